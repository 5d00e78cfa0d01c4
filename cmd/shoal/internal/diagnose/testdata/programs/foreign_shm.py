# Runs in a mount namespace with a small /dev/shm. A file that no process of the job made fills it.
import os, subprocess
import fault

def work(started, done):
    started.release()
    done.acquire()

if __name__ == "__main__":
    ctx = fault.context()
    f = os.statvfs("/dev/shm")
    size = int(f.f_bavail * f.f_bsize * 0.985)
    command = f"head -c {size} /dev/zero >/dev/shm/cache; exec 3</dev/shm/cache; echo; exec cat <&4 >/dev/null"
    other = subprocess.Popen(["setsid", "sh", "-c", f"exec 4<&0; ({command}) & echo $!"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # it ends with this process
    culprit = int(other.stdout.readline())
    other.stdout.readline()
    started, done = ctx.Semaphore(0), ctx.Semaphore(0)
    ctx.Process(target=work, args=(started, done), daemon=True).start()
    started.acquire()
    fault.ready(culprit)
    done.acquire()
