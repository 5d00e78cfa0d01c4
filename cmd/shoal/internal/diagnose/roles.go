package diagnose

import (
	"path"
	"strings"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/pystack"
)

// A role is the part that a process has in a job.
type role string

const (
	roleMain    role = "main"
	roleLoader  role = "DataLoader worker"
	roleSpawned role = "spawned process"
	roleForked  role = "forked process"
	roleRank    role = "rank"
	roleAgent   role = "torchrun agent"
	roleTracker role = "resource tracker"
	roleServer  role = "fork server"
	roleManager role = "torch_shm_manager"
	roleOther   role = "other program"
	roleDead    role = "ended process"
)

// works reports whether a process with the role runs the user's code.
func (r role) works() bool {
	switch r {
	case roleMain, roleLoader, roleSpawned, roleForked, roleRank:
		return true
	}
	return false
}

// isAgent reports whether a command is torchrun or one of its older names.
func isAgent(command string) bool {
	for _, part := range []string{"torch.distributed.run", "torch.distributed.launch", "torch/distributed/run.py",
		"torch/distributed/launch.py"} {
		if strings.Contains(command, part) {
			return true
		}
	}
	for i, word := range strings.Fields(command) {
		if i < 2 && path.Base(word) == "torchrun" {
			return true
		}
	}
	return false
}

// isHelper reports whether a command is a helper process of multiprocessing.
func isHelper(command string) bool {
	return strings.Contains(command, "multiprocessing.resource_tracker") ||
		strings.Contains(command, "multiprocessing.semaphore_tracker") ||
		strings.Contains(command, "multiprocessing.forkserver")
}

// assignRoles determines the role of each process of the tree. The samples must have been read.
func (j *job) assignRoles() {
	for _, pid := range j.tree {
		p := j.last.processes[pid]
		if p == nil {
			p = j.first.processes[pid]
		}
		if p != nil {
			j.roles[pid] = j.roleOf(p)
		}
	}
}

func (j *job) roleOf(p *procfs.Process) role {
	command := strings.Join(p.Command, " ")
	parent := j.last.processes[j.parent[p.PID]]
	switch {
	case p.State == 'Z':
		return roleDead
	case path.Base(p.Exe) == "torch_shm_manager" || strings.Contains(command, "torch_shm_manager"):
		return roleManager
	case strings.Contains(command, "multiprocessing.resource_tracker"),
		strings.Contains(command, "multiprocessing.semaphore_tracker"):
		return roleTracker
	case strings.Contains(command, "multiprocessing.forkserver") && (parent == nil ||
		!strings.Contains(strings.Join(parent.Command, " "), "multiprocessing.forkserver")):
		return roleServer
	case p.Name == "pt_data_worker" || hasFunction(j.last.stacks[p.PID], "_worker_loop", "_utils/worker.py"):
		return roleLoader
	case isAgent(command):
		return roleAgent
	case p.Env["RANK"] != "" && p.Env["WORLD_SIZE"] != "" && (p.PID == j.root || j.roles[j.parent[p.PID]] == roleAgent):
		return roleRank
	case p.PID == j.root:
		return roleMain
	case strings.Contains(command, "multiprocessing.spawn"):
		return roleSpawned
	case strings.Contains(command, "multiprocessing.forkserver"):
		return roleForked
	case parent != nil && command == strings.Join(parent.Command, " ") && command != "", j.orphans[p.PID]:
		return roleForked
	case len(p.Maps.Python) > 0 && p.Maps.Torch:
		return roleMain
	}
	return roleOther
}

// hasFunction reports whether one of the stacks has a call of a function of a file, which is given
// by the end of its path.
func hasFunction(stacks []pystack.Stack, function, file string) bool {
	for _, s := range stacks {
		if indexFunction(s, function, file) >= 0 {
			return true
		}
	}
	return false
}

func indexFunction(s pystack.Stack, function, file string) int {
	for i, f := range s.Frames {
		if f.Function == function && strings.HasSuffix(f.File, file) {
			return i
		}
	}
	return -1
}

// stackOf returns the stack of the thread tid, or false if stacks does not have it.
func stackOf(stacks []pystack.Stack, tid int) (pystack.Stack, bool) {
	for _, s := range stacks {
		if s.TID == tid {
			return s, true
		}
	}
	return pystack.Stack{}, false
}

// userFrame returns the innermost frame outside of the standard library and of installed
// packages, or false if there is none.
func userFrame(s pystack.Stack) (pystack.Frame, bool) {
	for _, f := range s.Frames {
		if !isLibrary(f.File) {
			return f, true
		}
	}
	return pystack.Frame{}, false
}

// isLibrary reports whether a file belongs to an installation of Python.
func isLibrary(file string) bool {
	if strings.HasPrefix(file, "<") && file != "<stdin>" && file != "<string>" {
		return true
	}
	for _, part := range []string{"/site-packages/", "/dist-packages/", "/lib/python3"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	return false
}

// label returns the role and the number of a process, such as "DataLoader worker 1234".
func (j *job) label(pid int) string { return string(j.roles[pid]) + " " + itoa(pid) }

// placeOf returns the position of the main thread in the user's code, or in any code, or "".
func (j *job) placeOf(pid int) string {
	s, ok := stackOf(j.last.stacks[pid], pid)
	if !ok || len(s.Frames) == 0 {
		return ""
	}
	if f, ok := userFrame(s); ok {
		return f.String()
	}
	return s.Frames[0].String()
}
