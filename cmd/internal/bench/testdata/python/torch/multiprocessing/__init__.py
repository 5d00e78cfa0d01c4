from multiprocessing import *  # noqa: F401,F403
from multiprocessing import get_context  # noqa: F401


def set_sharing_strategy(strategy):
    pass
