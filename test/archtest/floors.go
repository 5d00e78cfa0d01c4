package archtest

import (
	"path"
	"strings"
)

// floors assigns packages to layers: floors[n] lists the packages of floor n, counted from the
// bottom. "a/*" matches everything below a, and "." is the root package.
var floors = [...][]string{
	0: {"internal/*", "shm", "encoding", "encoding/python", "test/model", "test/standin", "test/testutil",
		"test/timeline", "cuda/internal/ptx", "data/image/internal/pixel", "dist/internal/*"},
	1: {"internal/arena", "data/image/internal/jpeg", "data/image/internal/png"},
	2: {"internal/codec", "internal/leak", "internal/figures"},
	3: {"internal/device", "internal/crossing"},
	4: {"tensor", "wire"},
	5: {"autograd", "encoding/safetensors", "encoding/npy", "encoding/msgpack", "encoding/hdf5", "ipc", ".",
		"cuda", "test/devicetest", "internal/pickle/value", "internal/tree"},
	6: {"optim", "pool", "manager", "encoding/pt", "shoaltest", "data/row", "ipc/tcp", "ipc/pickle", "nats",
		"metrics", "trace", "shoallog",
		"shoalotel"},
	7: {"data", "data/*", "nn", "manager/*", "nats/broker", "libshoal"},
	8: {"data/service", "data/datasets", "data/jsonl", "data/parquet", "data/tokens", "dist", "dist/mpi",
		"torch/internal/reader"},
	9: {"torch", "torch/huggingface", "torch/internal/vision"},
	10: {"examples", "examples/*", "docs/learn", "docs/learn/*", "cmd/internal/bench",
		"test/*", "scripts/*"},
	11: {"cmd/internal/bench/cuda", "cmd/internal/beside", "cmd/internal/words"},
	12: {"cmd/internal/domains", "cmd/internal/hogwild", "cmd/shoal/internal/ranks",
		"cmd/shoal/internal/diagnose/procfs"},
	13: {"cmd/internal/subcommand", "cmd/internal/watch", "cmd/shoal/internal/diagnose/pystack"},
	14: {"cmd/*"},
}

// Packages with exceptional permissions. A permission extends to all packages below a directory.
var (
	mayCallKernel = []string{"internal/sys"}
	mayLoadCode   = []string{"internal/dl"}
	mayAskBroker  = []string{"nats"}
	mayBeBroker   = []string{"nats/broker"}
	mayBeTraced   = []string{"shoalotel"}
	// mayBeDynamic lists exceptions on the floors up to core; mustBeStatic lists additions from the
	// floors above.
	mayBeDynamic = []string{"internal/dl", "internal/cuda", "dist/internal/mpi",
		"internal/link/secure", "nats/broker", "cuda"}
	mustBeStatic = []string{"cmd/shoal"}
	mayBeUnsafe  = []string{"internal/sys", "internal/cuda", "dist/internal/mpi", "internal/arena",
		"internal/codec", "tensor", "internal/kernel", "cuda", "libshoal"}
	mayUseC       = []string{"libshoal"}
	withoutTensor = []string{".", "ipc", "pool", "manager"}
	withoutNATS   = []string{"cmd/shoal"}
)

// core is the highest floor that every program links.
const core = 5

// emptyNames are package names that do not describe the contents.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "base"}

// floorOf returns the floor of a package directory. ok is false if no floor lists it. An entry
// for the directory itself has precedence over one for a parent directory.
func floorOf(dir string) (floor int, ok bool) {
	for n, packages := range floors {
		for _, p := range packages {
			if dir == p {
				return n, true
			}
			if parent, all := strings.CutSuffix(p, "/*"); all && strings.HasPrefix(dir, parent+"/") {
				floor, ok = n, true
			}
		}
	}
	return floor, ok
}

// within reports whether dir is one of the listed directories or below one of them.
func within(dir string, list []string) bool {
	for _, l := range list {
		if dir == l || strings.HasPrefix(dir, l+"/") {
			return true
		}
	}
	return false
}

// title returns the name of a directory for use in messages.
func title(dir string) string {
	if dir == "." {
		return "the root package"
	}
	return path.Clean(dir)
}
