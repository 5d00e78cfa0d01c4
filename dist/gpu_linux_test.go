package dist_test

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// real has these tests run on the GPUs of this machine, in turn if there are fewer than a test asks
// for.
var real = flag.Bool("dist.real", false, "on the GPUs of this machine, not on simulated ones")

// gpus returns n of them for this process and its children: simulated ones, which run the kernels'
// own texts, and on which nothing may be left, or real ones.
func gpus(t testing.TB, n int) []tensor.Device {
	t.Helper()
	domain, err := arena.New(arena.Options{Budget: 64 << 20})
	testutil.NoError(t, err)
	// a real one may be used by others as well
	left := func(int) (int64, error) { return int64(domain.Stats().Blocks), nil }
	done := func() error { return nil }
	if !*real {
		devices, err := sim.Create(n, 64<<20)
		testutil.NoError(t, err)
		t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
		left, done = devices.Used, devices.Close
	} else if cuda.Available() != nil {
		t.Skip(cuda.Available())
	}
	before := arena.Current()
	arena.SetDefault(domain)
	all := make([]tensor.Device, n)
	for i := range all {
		all[i], err = cuda.ForRank(i)
		testutil.NoError(t, err)
	}
	t.Cleanup(func() {
		for i := range n {
			for end := time.Now().Add(watchdog); ; {
				testutil.NoError(t, tensor.EmptyCache())
				used, err := left(i)
				testutil.NoError(t, err)
				if used == 0 || t.Failed() { // a test that has failed leaves what it leaves
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d bytes, or blocks, are left on %v", used, all[i])
				}
			}
		}
		arena.SetDefault(before)
		testutil.NoError(t, errors.Join(cuda.Close(), domain.Close(), done()))
	})
	return all
}

func TestGroup_CollectivesOfTensorsOnGPUs(t *testing.T) {
	devs := gpus(t, 2)
	for _, there := range [][]tensor.Device{{devs[0], devs[1], nil}, {devs[1], devs[0], devs[1]}} {
		collectives(t, there, 1001, tensor.Float32, tensor.Int64, tensor.BFloat16)
	}
}

func TestAverageGrads_OfRanksOnGPUsOfTheirOwn(t *testing.T) { trainRanks(t, gpus(t, 2)) }

func TestGroup_NamesAKilledRankOnAGPU(t *testing.T) {
	devs := gpus(t, 2)
	killedRank(t, 1, devs[0], devs[1], devs[0])
}

func TestDataParallel_OnAGPU(t *testing.T) { dataParallel(t, gpus(t, 1)[0]) }

// Each GPU but the first has a replica of its own.
func TestDataParallel_OnSeveralGPUs(t *testing.T) {
	devs := gpus(t, 3)
	dataParallel(t, devs[0], devs[:2]...)
	dataParallel(t, devs[0], devs...)
}

func TestDataParallel_StatisticsAreThoseOfTheFirstGPU(t *testing.T) { statistics(t, gpus(t, 2)...) }

func TestDataParallel_ReplicasOnGPUsDropOthers(t *testing.T) { dropout(t, gpus(t, 2)...) }

func TestDataParallel_NoticesAKilledReplicaOnAGPU(t *testing.T) { killedReplica(t, gpus(t, 2)...) }
