# Two ranks of three are started.
import fault

def rank(n):
    pass

if __name__ == "__main__":
    fault.run_ranks(rank, 3, culprit=0, wait=1.5, absent=1)
