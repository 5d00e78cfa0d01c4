package diagnose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/words"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/internal/sys"
)

const (
	fullFiles    = 0.9  // of the limit of descriptors
	fullShm      = 0.97 // of the size of the file system
	manyThrottle = 0.1  // of the time
)

func findDescriptors(j *job) (found []Finding) {
	for _, p := range j.living() {
		limit := p.Limits.OpenFiles
		if limit <= 0 || float64(len(p.Files)) < fullFiles*float64(limit) {
			continue
		}
		var tensors, sockets, pipes int
		for _, f := range p.Files {
			switch {
			case f.Torch():
				tensors++
			case strings.HasPrefix(f.Target, "socket:"):
				sockets++
			case f.Pipe() != "":
				pipes++
			}
		}
		f := Finding{Rule: "descriptors", PID: p.PID, weight: weightDescriptors,
			Cause: fmt.Sprintf("%s has %d of at most %d descriptors open: the next one fails with \"Too many open "+
				"files\" or \"received 0 items of ancdata\"",
				j.label(p.PID), len(p.Files), limit),
			Evidence: []string{evidence("%d descriptors are tensors in shared memory, %d sockets, %d pipes", tensors,
				sockets, pipes)},
			Cure: "close the files that are not needed, or raise the limit (ulimit -n 65536)"}
		if tensors > len(p.Files)/2 {
			f.Cure = "each tensor received from another process holds a descriptor: copy tensors that are kept " +
				"(tensor.clone()), call torch.multiprocessing.set_sharing_strategy('file_system'), or raise the " +
				"limit (ulimit -n 65536)"
		}
		f.Evidence = j.appendPlace(f.Evidence, p.PID)
		found = append(found, f)
	}
	return found
}

// A shmFile is a file of shared memory: one with a name in /dev/shm, or one that is open.
type shmFile struct {
	name    string
	inode   uint64
	size    int64
	creator int // from the name of a tensor's memory; 0 if unknown
	users   []int
}

// findFullShm finds a full /dev/shm: 97 % or more of its size is used, as the job mounts it. The
// culprit is the process with the largest files there.
func findFullShm(j *job) []Finding {
	dir := filepath.Join(j.System.Proc, itoa(j.root), "root/dev/shm")
	size, free, err := sys.FileSystemUsage(dir)
	if err != nil || size == 0 || float64(size-free) < fullShm*float64(size) {
		return nil
	}
	files := j.shmFiles(dir, size-free)
	byOwner := make(map[int]int64)
	var sum int64
	for _, f := range files {
		owner := f.creator
		if len(f.users) > 0 && !slices.Contains(f.users, owner) {
			owner = f.users[0]
		}
		byOwner[owner] += f.size
		sum += f.size
	}
	pid := j.root
	for owner, n := range byOwner {
		if owner != 0 && n > byOwner[pid] {
			pid = owner
		}
	}
	state := "which is alive"
	if !j.exists(pid) {
		state = "which is dead"
	}
	holder := fmt.Sprintf("process %d, %s, holds most of it", pid, state)
	if byOwner[0] > byOwner[pid] {
		holder = "files that no visible process uses hold most of it"
	}
	f := Finding{Rule: "shm-full", PID: pid, weight: weightShm,
		Cause:    fmt.Sprintf("/dev/shm is full (%s of %s): %s", words.Bytes(size-free), words.Bytes(size), holder),
		Evidence: []string{evidence("%s with %s in all", words.Count(len(files), "file"), words.Bytes(sum))},
		Cure: "enlarge /dev/shm (docker run --shm-size=8g, or mount -o remount,size=8G /dev/shm), or use " +
			"fewer workers, a smaller prefetch_factor or smaller batches. The next write fails with a bus error"}
	owners := make([]int, 0, len(byOwner))
	for o := range byOwner {
		owners = append(owners, o)
	}
	slices.SortFunc(owners, func(a, b int) int { return int(byOwner[b] - byOwner[a]) })
	for _, o := range owners[:min(len(owners), 8)] {
		name := "files without a known creator"
		if o != 0 {
			name = "process " + itoa(o)
			switch {
			case !j.exists(o):
				name += " (dead)"
			case j.last.processes[o] == nil:
				name += " (not of this job): " + j.commandOf(o)
			}
		} else if large := largestUnowned(files); large != nil {
			name += ", the largest is " + large.name
		}
		f.Evidence = append(f.Evidence, evidence("%s: %s", name, words.Bytes(byOwner[o])))
	}
	f.Evidence = j.appendPlace(f.Evidence, pid)
	return []Finding{f}
}

func largestUnowned(files []*shmFile) (large *shmFile) {
	for _, f := range files {
		if f.creator == 0 && len(f.users) == 0 && (large == nil || f.size > large.size) {
			large = f
		}
	}
	return large
}

// outsiders returns the processes that are not of the job and have dir, the job's /dev/shm, as
// their /dev/shm.
func (j *job) outsiders(dir string) (all []*procfs.Process) {
	st, err := os.Stat(dir)
	pids, _ := j.System.PIDs()
	for _, pid := range pids {
		other, err2 := os.Stat(filepath.Join(j.System.Proc, itoa(pid), "root/dev/shm"))
		if j.last.processes[pid] != nil || err != nil || err2 != nil || !os.SameFile(st, other) {
			continue
		}
		p := &procfs.Process{Stat: procfs.Stat{PID: pid}}
		j.System.ReadMaps(p)
		j.System.ReadFiles(p)
		all = append(all, p)
	}
	return all
}

// shmFiles returns the files in shared memory, each once. dir is the job's /dev/shm, and used is
// the number of bytes used in it. The files of processes that are not of the job are read only
// if the job's files are less than half of the used bytes.
func (j *job) shmFiles(dir string, used int64) []*shmFile {
	byInode := make(map[uint64]*shmFile)
	add := func(path, name string, user int) {
		st, err := os.Stat(path)
		inode := inodeOf(st)
		if err != nil || inode == 0 {
			return
		}
		f := byInode[inode]
		if f == nil {
			f = &shmFile{name: shortName(name), inode: inode, size: allocated(st), creator: creatorOf(shortName(name))}
			byInode[inode] = f
		}
		if user != 0 && !slices.Contains(f.users, user) {
			f.users = append(f.users, user)
		}
	}
	addOpen := func(all []*procfs.Process) {
		for _, p := range all {
			for _, f := range p.Files {
				if strings.HasPrefix(f.Target, "/dev/shm/") {
					add(filepath.Join(j.System.Proc, itoa(p.PID), "fd", itoa(f.FD)), f.Target, p.PID)
				}
			}
		}
	}
	addMapped := func(all []*procfs.Process) {
		for _, p := range all {
			for _, m := range p.Maps.Shared {
				f := byInode[m.Inode]
				if f == nil && !m.Semaphore() {
					name := shortName(m.Path)
					f = &shmFile{name: name, inode: m.Inode, size: int64(m.End - m.Start), creator: creatorOf(name)}
					byInode[m.Inode] = f
				}
				if f != nil && !slices.Contains(f.users, p.PID) {
					f.users = append(f.users, p.PID)
				}
			}
		}
	}
	addOpen(j.living())
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		add(filepath.Join(dir, e.Name()), e.Name(), 0)
	}
	addMapped(j.living())
	var owned int64
	for _, f := range byInode {
		if len(f.users) > 0 {
			owned += f.size
		}
	}
	if owned < used/2 {
		others := j.outsiders(dir)
		addOpen(others)
		addMapped(others)
	}
	files := make([]*shmFile, 0, len(byInode))
	for _, f := range byInode {
		files = append(files, f)
	}
	return files
}

func findThrottled(j *job) (found []Finding) {
	members := make(map[string][]int)
	for _, p := range j.living() {
		g := j.last.groups[p.PID]
		members[g.CPUGroup] = append(members[g.CPUGroup], p.PID)
	}
	for group, pids := range members {
		a, b := j.first.groups[pids[0]], j.last.groups[pids[0]]
		lost := time.Duration(b.ThrottledNS - a.ThrottledNS)
		var used, wanted float64
		for _, p := range pids {
			used, wanted = used+j.cpu(p), wanted+j.runnable(p)
		}
		// Linux 6.18 counts only a part of the time, so the use of the quota is compared as well.
		exhausted := used > 0.85*b.Quota && wanted > 1.5*b.Quota
		throttled := float64(lost) >= manyThrottle*float64(j.elapsed)
		if b.Quota == 0 || b.ThrottledNS < a.ThrottledNS || !throttled && !exhausted {
			continue
		}
		pid := pids[0]
		for _, p := range pids {
			if len(pids) < len(j.living()) && j.cpu(p) > j.cpu(pid) {
				pid = p
			}
		}
		f := Finding{Rule: "throttled", PID: pid, weight: weightThrottled,
			Cause: fmt.Sprintf("%s is throttled: its control group %s may use %.2f CPUs, used %.2f, and had %.1f "+
				"threads to run",
				j.label(pid), group, b.Quota, used, wanted),
			Evidence: []string{evidence("the group was throttled in %d periods during the observation, for %.2f "+
				"s; %d periods in all",
				b.Throttled-a.Throttled, lost.Seconds(), b.Throttled),
				evidence("%s of the job in this group: %v", countProcesses(len(pids)), pids[:min(len(pids), 16)])},
			Cure: fmt.Sprintf("raise the CPU limit of the group, or use no more than %d threads and workers in all",
				max(1, int(b.Quota)))}
		found = append(found, f)
	}
	return found
}

// runnable returns the average number of threads of a process that ran or waited for a CPU.
func (j *job) runnable(pid int) float64 {
	sum, n := 0, 0
	for _, q := range j.quick {
		for _, state := range q.states[pid] {
			if state == 'R' {
				sum++
			}
		}
		n++
	}
	return float64(sum) / float64(max(n, 1))
}

func findOversubscribed(j *job) []Finding {
	var total float64
	threaded := 0
	var list []string
	for _, p := range j.living() {
		n := j.runnable(p.PID)
		total += n
		if n > 1.5 {
			threaded++
		}
		if n > 0.5 {
			list = append(list,
				evidence("%s has %s, %.1f of them runnable", j.label(p.PID), words.Count(len(p.Threads), "thread"), n))
		}
	}
	cpus := float64(j.CPUs)
	if !(threaded >= 2 && total > 2*cpus || total > 4*cpus) {
		return nil
	}
	waited, ran := j.queued()
	if waited < ran/2 {
		return nil
	}
	return []Finding{{Rule: "oversubscribed", PID: j.root, weight: weightOversubscribed,
		Cause: fmt.Sprintf("job %d has %.0f runnable threads on %d CPUs: its processes take turns", j.root,
			total, j.CPUs),
		Evidence: append([]string{evidence("its threads ran for %.1f s and waited for a CPU for %.1f s",
			ran.Seconds(), waited.Seconds())},
			list[:min(len(list), 8)]...),
		Cure: fmt.Sprintf("call torch.set_num_threads(1) in workers or set OMP_NUM_THREADS=1, and use at most %d "+
			"workers", j.CPUs)}}
}

// queued returns how long the threads of the job waited for a CPU, and how long they ran.
func (j *job) queued() (waited, ran time.Duration) {
	for _, p := range j.living() {
		for _, t := range p.Threads {
			old, ok := threadOf(j.first.processes[p.PID], t.PID)
			if ok && t.QueueNS >= old.QueueNS && t.RunNS >= old.RunNS {
				waited += time.Duration(t.QueueNS - old.QueueNS)
				ran += time.Duration(t.RunNS - old.RunNS)
			}
		}
	}
	return waited, ran
}
