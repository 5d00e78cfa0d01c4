import os, subprocess, sys, time
import fault

if __name__ == "__main__":
    child = subprocess.Popen([sys.executable, "-c", "print('x' * 10**6)"], stdout=subprocess.PIPE)
    time.sleep(1)
    fault.ready(os.getpid())
    child.wait()
