package torch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Owners of files] Files in /dev/shm and directories in /tmp outlive a process that is
// killed, so their names identify their owner: its pid, its start time and its PID space. A sweep
// removes the files of processes that have ended.
//
// A pid only means something in its own PID namespace. Containers may share /dev/shm and /tmp with
// the host and with each other, and hosts may share /tmp through NFS. A process of another PID
// space must therefore never be looked up in /proc. Its shared memory is removed if the owner's
// lock on the file is free: the kernel releases that lock when the owner ends, and every process on
// the machine sees it. Semaphores and directories, a page at most, stay until a program runs in
// their PID space.

const (
	namePrefix      = "shoal_"
	semaphorePrefix = "sem." // the C library's prefix for the names of semaphores

	// ownerLock is the byte of a named region that its owner locks, with sys.LockByte.
	ownerLock = 0

	// lockGrace is the age below which an unlocked region of another PID space is not removed: its
	// owner may be between creating and locking it.
	lockGrace = time.Minute
)

// An owner is the process that created a file, as encoded in the name of the file. parseOwner
// returns it.
type owner struct {
	process
	space string
}

// pidSpace identifies this process's PID namespace among all namespaces of all machines, also after
// a reboot. It returns an error if /proc does not have the namespace.
var pidSpace = sync.OnceValues(func() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(boot, namespace...))
	return hex.EncodeToString(sum[:8]), nil
})

var names atomic.Int64

// freshName returns a new name for shared memory that identifies this process as its owner. It
// starts with a slash, as for shm_open. It returns an error if /proc cannot be read.
func freshName() (string, error) {
	name, err := ownerName(os.Getpid(), names.Add(1))
	return "/" + name, err
}

// ownerName returns the n-th name of a process in this PID namespace, without a slash. It
// returns an error if the process has ended or /proc cannot be read. The pid must come first
// after the prefix, as in PyTorch's names: CUDATensor.senderPID and leave.py read it.
func ownerName(pid int, n int64) (string, error) {
	start, err := sys.StartTime(pid)
	if err != nil {
		return "", err
	}
	space, err := pidSpace()
	return fmt.Sprintf("%s%d_%d_%s_%d", namePrefix, pid, start, space, n), err
}

// parseOwner returns the owner in a name of ownerName. ok is false for any other name.
func parseOwner(name string) (o owner, ok bool) {
	name, ok = strings.CutPrefix(name, namePrefix)
	parts := strings.Split(name, "_")
	if !ok || len(parts) != 4 {
		return owner{}, false
	}
	var n int64
	k, err := fmt.Sscanf(parts[0]+" "+parts[1]+" "+parts[3], "%d %d %d", &o.pid, &o.start, &n)
	o.space = parts[2]
	return o, k == 3 && err == nil
}

// hasEnded reports whether the owner is known to have ended. It returns false for every process of
// another PID space.
func (o owner) hasEnded() bool { return o.isLocal() && !o.isAlive() }

// isLocal reports whether the owner is known to be in this process's PID namespace.
func (o owner) isLocal() bool {
	space, err := pidSpace()
	return err == nil && space == o.space
}

// sweepShared removes from /dev/shm the shared memory and the semaphores of this package that
// belong to processes which have ended. Errors are ignored.
func sweepShared() {
	for _, kind := range []string{"", semaphorePrefix} {
		files, err := filepath.Glob(filepath.Join(shmDir, kind+namePrefix+"*"))
		if err != nil {
			return
		}
		for _, f := range files {
			o, ok := parseOwner(strings.TrimPrefix(filepath.Base(f), kind))
			if !ok {
				continue
			}
			ended := o.hasEnded()
			if kind == "" {
				ended = (ended || !o.isLocal() && regionUnlocked(f)) && !isLeftToReceivers("/"+filepath.Base(f))
			}
			if ended {
				os.Remove(f)
			}
		}
	}
}

// regionUnlocked reports whether the owner of the named region at path, in any PID namespace,
// has ended. It returns false for a region that is younger than lockGrace, one minute, or cannot
// be examined.
func regionUnlocked(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || time.Since(info.ModTime()) < lockGrace {
		return false
	}
	f, err := openNamed("/" + filepath.Base(path))
	if err != nil {
		return false
	}
	defer f.Close()
	locked, err := sys.ByteLocked(f, ownerLock)
	return err == nil && !locked
}
