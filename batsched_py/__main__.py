"""``python -m batsched_py`` is the command ``batsched-py``."""

import _signal as signal  # type: ignore[import-not-found]  # the part of ``signal`` that needs no loading
import gc


def main() -> None:
    """Load the command line and run it; Ctrl-C while it is being loaded ends it without a word.

    What is imported is no garbage, so Python looks for garbage rarely.
    """
    gc.set_threshold(50_000)
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from batsched_py.cli.main import main

    if hears:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


if __name__ == "__main__":
    main()
