package rules_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/test/testutil"
)

var collectives = []rule{
	{step: "T14", asked: "NCCL: an all-reduce of 1 and 2 over two devices", needs: 2, ask: func(p *process) string {
		return p.collect([]int32{0, 1})
	}},
	{step: "T14", asked: "NCCL: two ranks on one device", ask: func(p *process) string {
		return p.collect([]int32{0, 0})
	}},
}

// collect adds up 1, 2, … of ranks on these devices, or says why that was not done.
func (p *process) collect(on []int32) string {
	if p.paths != "" {
		return "not here: NCCL knows no simulated devices"
	}
	lib, err := openNCCL()
	if err != nil {
		return "not here: " + err.Error()
	}
	sums, err := p.enter().allReduce(lib, on)
	if err != nil {
		return fmt.Sprintf("%s: refused: %v", lib.version(), err)
	}
	return fmt.Sprintf("%s: %v", lib.version(), sums)
}

func (p *process) allReduce(lib *nccl, on []int32) (sums []float32, err error) {
	comms, err := lib.initAll(on)
	if err != nil {
		return nil, err
	}
	contexts, streams, words := make([]cudriver.Context, len(on)), make([]cudriver.Stream, len(on)),
		make([]cudriver.Ptr, len(on))
	for i, d := range on {
		contexts[i] = testutil.Must(p.PrimaryCtxRetain(cudriver.Device(d)))
		testutil.MustNoError(p.CtxSetCurrent(contexts[i]))
		streams[i], words[i] = testutil.Must(p.StreamCreate(cudriver.StreamNonBlocking)), testutil.Must(p.MemAlloc(4))
		testutil.MustNoError(p.MemsetD32Async(words[i], math.Float32bits(float32(i+1)), 1, streams[i]))
	}
	if err := lib.sum(words, comms, streams); err != nil {
		return nil, err
	}
	for i := range on {
		testutil.MustNoError(p.CtxSetCurrent(contexts[i])) // NCCL has made another current
		p.stream = streams[i]
		sums = append(sums, math.Float32frombits(testutil.Must(p.read(words[i]))))
	}
	return sums, lib.destroy(comms)
}

// nccl is the part of NCCL that one process needs for several devices.
type nccl struct{ *dl.Library }

// openNCCL loads it. SHOAL_NCCL says where it is, if the loader does not find it.
func openNCCL() (*nccl, error) {
	names := []string{"libnccl.so.2"}
	if name := os.Getenv("SHOAL_NCCL"); name != "" {
		names = []string{name}
	}
	lib, err := dl.Open(names...)
	return &nccl{lib}, err
}

//go:uintptrescapes
func (n *nccl) call(name string, args ...uintptr) error {
	f, err := n.Symbol(name)
	if err != nil {
		return err
	}
	if r := int32(dl.Call(f, args...)); r != 0 {
		return fmt.Errorf("%s: result %d", name, r)
	}
	return nil
}

func (n *nccl) version() string {
	v := new(int32)
	if err := n.call("ncclGetVersion", uintptr(unsafe.Pointer(v))); err != nil {
		return err.Error()
	}
	return fmt.Sprint("NCCL ", *v)
}

func (n *nccl) initAll(on []int32) (comms []uintptr, err error) {
	comms = make([]uintptr, len(on))
	err = dl.Guard(func() error {
		return n.call("ncclCommInitAll", uintptr(unsafe.Pointer(&comms[0])), uintptr(len(on)),
			uintptr(unsafe.Pointer(&on[0])))
	})
	return comms, err
}

// sum adds up one float32 of each rank, in its place.
func (n *nccl) sum(words []cudriver.Ptr, comms []uintptr, streams []cudriver.Stream) error {
	const float, sum = 7, 0 // ncclFloat32, ncclSum
	err := n.call("ncclGroupStart")
	for i, p := range words {
		err = errors.Join(err, n.call("ncclAllReduce", uintptr(p), uintptr(p), 1, float, sum, comms[i],
			uintptr(streams[i])))
	}
	return errors.Join(err, n.call("ncclGroupEnd"))
}

func (n *nccl) destroy(comms []uintptr) (err error) {
	for _, c := range comms {
		err = errors.Join(err, n.call("ncclCommDestroy", c))
	}
	return err
}

// note reads what the stand-in has noted of its calls.
func (n *nccl) note() string {
	b := make([]byte, 1024)
	testutil.MustNoError(n.call("standin_note", uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))))
	text, _, _ := strings.Cut(string(b), "\x00")
	return text
}
