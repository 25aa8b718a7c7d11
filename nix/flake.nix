{
  description = "batsched_py beside Batsim 4, for reproducible simulations";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11"; # package.nix needs nanobind 2.4
    # This revision's package `batsim` is Batsim 4.2.0.
    kapack.url = "github:oar-team/nur-kapack/cef1d6ed5841e8c2390a236ccc01c0332e90d7f7";
  };

  outputs = { self, nixpkgs, kapack }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEachSystem = make: nixpkgs.lib.genAttrs systems (system: make system nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEachSystem (system: pkgs: {
        default = pkgs.python312Packages.callPackage ./package.nix { };
        batsim = kapack.packages.${system}.batsim;
      });

      apps = forEachSystem (system: pkgs: {
        # nix run ./nix#simulate -- easy platform.xml workload.json results/prefix
        simulate = {
          type = "app";
          program = "${pkgs.writeShellApplication {
            name = "simulate";
            runtimeInputs = [ self.packages.${system}.default self.packages.${system}.batsim ];
            text = builtins.readFile ./simulate.sh;
          }}/bin/simulate";
        };
      });

      devShells = forEachSystem (system: pkgs: {
        default = pkgs.mkShell {
          packages = [
            self.packages.${system}.default
            self.packages.${system}.batsim
            pkgs.gnumake
            pkgs.python312
          ];
        };
      });
    };
}
