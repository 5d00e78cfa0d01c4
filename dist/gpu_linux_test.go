package dist_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cudriver/sim"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// simulated returns GPUs for this process and its children, which run the kernels' own texts. Nothing may be left on them.
func simulated(t testing.TB, n int) []tensor.Device {
	t.Helper()
	devices, err := sim.Create(n, 64<<20)
	check(t, err)
	t.Setenv(cuda.SimulateKey, strings.Join(devices.Paths(), ","))
	domain, err := shm.New(shm.Options{Budget: 64 << 20})
	check(t, err)
	before := shm.Current()
	shm.SetDefault(domain)
	all := make([]tensor.Device, n)
	for i := range all {
		all[i], err = cuda.ParseDevice("cuda:" + strconv.Itoa(i))
		check(t, err)
	}
	t.Cleanup(func() {
		for i := range n {
			for end := time.Now().Add(watchdog); ; tensor.Collect() {
				check(t, cuda.EmptyCache())
				used, err := devices.Used(i)
				check(t, err)
				if used == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d bytes are left on %v", used, all[i])
				}
			}
		}
		shm.SetDefault(before)
		check(t, errors.Join(cuda.Close(), domain.Close(), devices.Close()))
	})
	return all
}

func TestCollectivesOfTensorsOnGPUs(t *testing.T) {
	devs := simulated(t, 2)
	for _, there := range [][]tensor.Device{{devs[0], devs[1], nil}, {devs[1], devs[0], devs[1]}} {
		collectives(t, there, 1001, tensor.Float32, tensor.Int64, tensor.BFloat16)
	}
}

func TestRanksTrainOnGPUsOfTheirOwn(t *testing.T) { trainRanks(t, simulated(t, 2)) }

func TestAKilledRankOnAGPUIsNamedByAllOthers(t *testing.T) {
	devs := simulated(t, 2)
	killedRank(t, 1, devs[0], devs[1], devs[0])
}

func TestDataParallelOnAGPU(t *testing.T) { dataParallel(t, simulated(t, 1)[0]) }

// Each GPU but the first has a replica of its own.
func TestDataParallelOnSeveralGPUs(t *testing.T) {
	devs := simulated(t, 3)
	dataParallel(t, devs[0], devs[:2]...)
	dataParallel(t, devs[0], devs...)
}

func TestStatisticsAreThoseOfTheFirstGPU(t *testing.T) { statistics(t, simulated(t, 2)...) }

func TestReplicasOnGPUsDropOthers(t *testing.T) { dropout(t, simulated(t, 2)...) }

func TestAReplicaOnAGPUIsKilled(t *testing.T) { killedReplica(t, simulated(t, 2)...) }
