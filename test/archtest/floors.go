package archtest

import (
	"path"
	"strings"
)

// floors is the house from the ground up: floors[n] lists what lives on floor n. "a/*" is
// everything below a, and "." is the root package.
var floors = [...][]string{
	0: {"internal/*", "shm", "encoding", "encoding/python", "test/model", "test/standin", "test/testutil",
		"test/timeline", "cuda/internal/ptx", "data/image/internal/pixel", "dist/internal/*"},
	1: {"internal/arena", "data/image/internal/jpeg", "data/image/internal/png"},
	2: {"internal/codec", "internal/leak", "internal/figures"},
	3: {"internal/device", "internal/crossing"},
	4: {"tensor", "wire"},
	5: {"autograd", "encoding/safetensors", "encoding/npy", "encoding/msgpack", "encoding/hdf5", "ipc", ".",
		"cuda", "test/devicetest", "internal/pickle/value", "internal/tree"},
	6: {"optim", "pool", "manager", "encoding/pt", "shoaltest", "data/row", "ipc/tcp", "nats", "metrics", "trace", "shoallog",
		"shoalotel"},
	7: {"data", "data/*", "nn", "manager/*", "nats/broker"},
	8: {"data/service", "data/datasets", "data/jsonl", "data/parquet", "data/tokens", "dist", "dist/mpi",
		"torch/internal/reader"},
	9: {"torch", "torch/huggingface", "torch/internal/vision"},
	10: {"examples", "examples/*", "docs/learn", "docs/learn/*", "cmd/internal/bench",
		"test/*", "scripts/*"},
	11: {"cmd/internal/bench/cuda", "cmd/internal/beside", "cmd/internal/words"},
	12: {"cmd/internal/domains", "cmd/internal/hogwild", "cmd/shoal/internal/ranks"},
	13: {"cmd/internal/subcommand", "cmd/internal/watch"},
	14: {"cmd/*"},
}

// The packages that may do what only few may. A package may do what its parent directory may.
var (
	mayCallKernel = []string{"internal/sys"}
	mayLoadCode   = []string{"internal/dl"}
	mayAskBroker  = []string{"nats"}
	mayBeBroker   = []string{"nats/broker"}
	mayBeTraced   = []string{"shoalotel"}
	// mayBeDynamic are of the floors up to core, mustBeStatic of those above.
	mayBeDynamic = []string{"internal/dl", "internal/cuda", "dist/internal/mpi",
		"internal/link/secure", "nats/broker", "cuda"}
	mustBeStatic = []string{"cmd/shoal"}
	mayBeUnsafe  = []string{"internal/sys", "internal/cuda", "dist/internal/mpi", "internal/arena",
		"internal/codec", "tensor", "internal/kernel", "cuda"}
	withoutTensor = []string{".", "ipc", "pool", "manager"}
	withoutNATS   = []string{"cmd/shoal"}
)

// core is the highest floor that every program stands on.
const core = 5

// emptyNames say nothing about what is inside.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "base"}

// floorOf returns the floor of a package directory: its own, or else that of the directory above it
// that has one.
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

// within reports whether dir is one of the listed directories or below one.
func within(dir string, list []string) bool {
	for _, l := range list {
		if dir == l || strings.HasPrefix(dir, l+"/") {
			return true
		}
	}
	return false
}

// title is how a directory is called in a sentence.
func title(dir string) string {
	if dir == "." {
		return "the root package"
	}
	return path.Clean(dir)
}
