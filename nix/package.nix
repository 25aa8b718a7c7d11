# batsched_py as a Python package of nixpkgs.
{ lib, buildPythonPackage, hatchling, nanobind, click, msgspec, networkx, numpy, pandas, pyzmq, rich }:

assert builtins.compareVersions nanobind.version "2.4" >= 0;

buildPythonPackage {
  pname = "batsched-py";
  version =
    let init = builtins.readFile ../batsched_py/__init__.py;
    in builtins.head (builtins.match ''.*__version__ = "([^"]+)".*'' init);
  pyproject = true;
  src = lib.cleanSource ../.;
  build-system = [ hatchling nanobind ];
  dependencies = [ click msgspec networkx numpy pandas pyzmq rich ];
  pythonImportsCheck = [ "batsched_py" ];
  meta = {
    description = "A Batsim decision process, schedulers, feedback users and a built-in Batsim";
    license = lib.licenses.mit;
    mainProgram = "batsched-py";
  };
}
