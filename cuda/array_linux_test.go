package cuda_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/standin"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestArrayInterface_IsPythons(t *testing.T) {
	onDevices(t, 1, 64*mib)
	x, err := tensor.Arange(tensor.Float32, 0, 12, 1).View(3, 4).ToDevice(device(t, "cuda"))
	testutil.NoError(t, err)
	columns := x.Select(1, 2)
	a, err := cuda.ArrayInterfaceOf(columns)
	testutil.NoError(t, err)
	b, err := json.Marshal(a)
	testutil.NoError(t, err)
	if want := fmt.Sprintf(
		`{"shape":[3],"typestr":"\u003cf4","data":[%d,false],"strides":[16],"version":3,"stream":%d}`,
		on(x).Pointer()+8, *a.Stream); string(b) != want {
		t.Errorf("%s\nwant %s", b, want)
	}
	if whole, err := cuda.ArrayInterfaceOf(x); err != nil || whole.Strides != nil {
		t.Errorf("row-major: %v, %v", whole, err)
	}
	var back cuda.ArrayInterface
	testutil.NoError(t, json.Unmarshal(b, &back))
	done := 0
	y, err := back.Tensor(x.Device().(*cuda.Device), func() error { done++; return nil })
	testutil.NoError(t, err)
	if got := onHost(t, y); !slices.Equal(got, []float32{2, 6, 10}) || done != 0 {
		t.Errorf("%v, done %d times", got, done)
	}
	testutil.NoError(t, y.Close())
	if done != 1 {
		t.Errorf("done %d times", done)
	}
	for text, want := range map[string]error{
		`{`: cuda.ErrArray, `{"version":1}`: cuda.ErrArray, `{"version":3,"data":[1]}`: cuda.ErrArray,
		`{"version":3,"shape":[1],"data":["x",false]}`:                                                             cuda.ErrArray,
		`{"version":3,"shape":[1],"data":[1,false],"mask":[1]}`:                                                    cuda.ErrArray,
		`{"version":3,"data":[1,false]}`:                                                                           cuda.ErrArray,
		`{"version":4,"shape":[1],"data":[1,false]}`:                                                               cuda.ErrArray,
		`{"version":3,"shape":[1],"data":[1,0]}`:                                                                   cuda.ErrArray,
		`{"version":3,"shape":[1],"data":[1,false],"stream":-1}`:                                                   cuda.ErrArray,
		`{"version":2,"shape":[],"typestr":"|u1","data":[1,true],"strides":null,"descr":[["","|u1"]],"mask":null}`: nil,
	} {
		if err := back.UnmarshalJSON([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	good := a
	for name, c := range map[string]struct {
		change func(a *cuda.ArrayInterface)
		want   error
	}{
		"another byte order":  {func(a *cuda.ArrayInterface) { a.Typestr = ">f4" }, cuda.ErrArray},
		"no dtype":            {func(a *cuda.ArrayInterface) { a.Typestr = "<f3" }, cuda.ErrArray},
		"a stride of 3 bytes": {func(a *cuda.ArrayInterface) { a.Strides = []int{3} }, cuda.ErrArray},
		"memory of nobody":    {func(a *cuda.ArrayInterface) { a.Data = 4096 }, cuda.ErrRange},
		"beyond its memory":   {func(a *cuda.ArrayInterface) { a.Shape = []int{1 << 30} }, tensor.ErrLayout},
		"a stride too few":    {func(a *cuda.ArrayInterface) { a.Shape = []int{1, 1} }, tensor.ErrLayout},
		"read-only":           {func(a *cuda.ArrayInterface) { a.ReadOnly = true }, cuda.ErrArray},
		"stream 0":            {func(a *cuda.ArrayInterface) { a.Stream = new(uint64) }, cuda.ErrArray},
		"a byte between":      {func(a *cuda.ArrayInterface) { a.Data++ }, cuda.ErrArray},
		"no type":             {func(a *cuda.ArrayInterface) { a.Typestr = "" }, cuda.ErrArray},
		"a record":            {func(a *cuda.ArrayInterface) { a.Typestr = "|V8" }, cuda.ErrArray},
		"a size below 0":      {func(a *cuda.ArrayInterface) { a.Shape = []int{-1} }, tensor.ErrLayout},
		"backwards":           {func(a *cuda.ArrayInterface) { a.Strides = []int{-16} }, tensor.ErrLayout},
		"nowhere":             {func(a *cuda.ArrayInterface) { a.Data = 0 }, cuda.ErrRange},
		"an invalid stream": {func(a *cuda.ArrayInterface) { s := uint64(77); a.Stream = &s },
			cudriver.ErrorInvalidHandle},
	} {
		if *real && c.want == cudriver.ErrorInvalidHandle {
			continue // a driver believes what it is given
		}
		bad := good
		c.change(&bad)
		if _, err := bad.Tensor(x.Device().(*cuda.Device),
			func() error { t.Error(name, "was done with"); return nil }); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cuda.ArrayInterfaceOf(tensor.New(tensor.Float32, 1)); !errors.Is(err, cuda.ErrDevice) {
		t.Errorf("on the host: %v", err)
	}
	testutil.NoError(t, errors.Join(columns.Close(), x.Close()))
}

// refusals are of structs that are of the right version.
func refusals(t *testing.T, call func(string, ...uintptr) uintptr, at uintptr) {
	const device, id, dims, code, bits, lanes = 8, 12, 16, 20, 21, 22
	for name, c := range map[string]struct {
		at   uintptr
		byte uint8
		want error
	}{
		"on the host": {device, 1, cuda.ErrDevice}, "managed memory": {device, 13, cuda.ErrDevice},
		"no such device": {id, 9, cuda.ErrDevice},
		"dimensions":     {dims, 65, cuda.ErrArray}, "an opaque handle": {code, 3, cuda.ErrArray},
		"float of 8 bits": {bits, 8, cuda.ErrArray},
		"a vector":        {lanes, 2, cuda.ErrArray}, "a byte between": {0, uint8(at) + 1, cuda.ErrArray},
	} {
		p := pointer(call("produce", at))
		*(*uint8)(unsafe.Add(p, c.at)) = c.byte
		if _, err := cuda.FromDLPack("dltensor", p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := pointer(call("produce", at))
	*(*uintptr)(unsafe.Add(p, 32)), *(*uintptr)(unsafe.Add(p, 56)) = 0, 0 // strides and deleter are NULL
	x, err := cuda.FromDLPack("dltensor", p)
	testutil.NoError(t, err)
	if got := onHost(t, x); !slices.Equal(got, []float32{2, 3, 4, 5, 6, 7}) {
		t.Errorf("row-major: %v", got)
	}
	testutil.NoError(t, x.Close())
	if n := call("deletions"); n != 202 {
		t.Errorf("%d deletions, and 202 of what was taken", n)
	}
}

// What has no element has no address, and what has no dimension has a shape nevertheless.
func TestArrayInterface_OfNothing(t *testing.T) {
	onDevices(t, 1, 64*mib)
	dev := device(t, "cuda").(*cuda.Device)
	for _, shape := range [][]int{{2, 0}, {}} {
		x, err := tensor.On(dev).Ones(tensor.Float32, shape...)
		testutil.NoError(t, err)
		a, err := cuda.ArrayInterfaceOf(x)
		testutil.NoError(t, err)
		b, err := json.Marshal(a)
		testutil.NoError(t, err)
		var back cuda.ArrayInterface
		testutil.NoError(t, json.Unmarshal(b, &back))
		y, err := back.Tensor(dev, func() error { return nil })
		testutil.NoError(t, err)
		if (a.Data == 0) != (x.Numel() == 0) || !slices.Equal(onHost(t, y), onHost(t, x)) ||
			!slices.Equal(y.Shape(), shape) {
			t.Errorf("%s arrives as %v of %v", b, onHost(t, y), y.Shape())
		}
		p, err := cuda.ToDLPack(x)
		testutil.NoError(t, err)
		z, err := cuda.FromDLPack("dltensor_versioned", p)
		testutil.NoError(t, err)
		if at := *(*uintptr)(unsafe.Add(p, 32)); (at == 0) != (x.Numel() == 0) || !slices.Equal(z.Shape(), shape) {
			t.Errorf("DLPack has %v at %#x", z.Shape(), at)
		}
		testutil.NoError(t, errors.Join(x.Close(), y.Close(), z.Close()))
	}
}

// library compiles what a library in C does with DLPack, and returns how to call its functions.
func library(t *testing.T, flags ...string) func(name string, args ...uintptr) uintptr {
	t.Helper()
	lib, err := dl.Open(standin.Compile(t, "testdata/dlpack.c", flags...))
	testutil.NoError(t, err)
	return func(name string, args ...uintptr) uintptr {
		f, err := lib.Symbol(name)
		testutil.NoError(t, err)
		return dl.Call(f, args...)
	}
}

func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func text(p uintptr) string {
	var b []byte
	for c := (*byte)(pointer(p)); *c != 0; c = (*byte)(unsafe.Add(unsafe.Pointer(c), 1)) {
		b = append(b, *c)
	}
	return string(b)
}

func TestToDLPack_IsReadByC(t *testing.T) { dlpackIsCs(t) }

func TestToDLPack_IsItsHeaders(t *testing.T) { dlpackIsCs(t, standin.Vendor(t, "dlpack.h")...) }

func dlpackIsCs(t *testing.T, flags ...string) {
	call := library(t, flags...)
	devices := onDevices(t, 1, 64*mib)
	x, err := tensor.Arange(tensor.Float32, 0, 12, 1).View(3, 4).ToDevice(device(t, "cuda"))
	testutil.NoError(t, err)
	part := x.Slice(1, 1, 3, 1)
	p, err := cuda.ToDLPack(part)
	testutil.NoError(t, err)
	if got, want := text(call("describe", uintptr(p))),
		fmt.Sprintf("1 flags 0 device 2:0 type 2/32/1 at %x+4: 3 by 4 2 by 1", on(x).Pointer()); got != want {
		t.Errorf("C sees %q, want %q", got, want)
	}
	at := uintptr(on(x).Pointer())
	for name, take := range map[string]func() (*tensor.Tensor, error){
		"plain": func() (*tensor.Tensor, error) { return cuda.FromDLPack("dltensor", pointer(call("produce", at))) },
		"versioned": func() (*tensor.Tensor,
			error) {
			return cuda.FromDLPack("dltensor_versioned", pointer(call("produce_versioned", at, 1, 0)))
		},
	} {
		y, err := take()
		testutil.NoError(t, err)
		before := call("deletions")
		if got := onHost(t, y); !slices.Equal(got, []float32{2, 4, 6, 3, 5, 7}) {
			t.Errorf("%s: %v", name, got)
		}
		testutil.NoError(t, y.Close())
		if n := call("deletions") - before; n != 1 && n != 100 {
			t.Errorf("%s: %d deletions", name, n)
		}
	}
	if _, err := cuda.FromDLPack("dltensor_versioned", pointer(call("produce_versioned", at, 2, 0))); !errors.Is(err,
		cuda.ErrArray) {
		t.Errorf("of another version: %v", err)
	}
	if _, err := cuda.FromDLPack("dltensor_versioned", pointer(call("produce_versioned", at, 1, 1))); !errors.Is(err,
		cuda.ErrArray) {
		t.Errorf("read-only: %v", err)
	}
	if _, err := cuda.FromDLPack("dltensor_versioned",
		pointer(call("produce_versioned", 4096, 1, 0))); !errors.Is(err, cuda.ErrRange) {
		t.Errorf("memory of nobody: %v", err)
	}
	if n := call("deletions"); n != 101 {
		t.Errorf("%d deletions, and 101 of what was taken", n)
	}
	first, err := cuda.FromDLPack("dltensor_versioned", pointer(call("produce_versioned", at, 1, 2))) // 2: it is a copy
	testutil.NoError(t, err)
	again, err := cuda.FromDLPack("dltensor", pointer(call("produce", at)))
	testutil.NoError(t, errors.Join(err, first.Close()))
	if got := onHost(t, again); got[0] != 2 {
		t.Errorf("what arrived twice is %v", got)
	}
	testutil.NoError(t, again.Close())
	if n := call("deletions"); n != 202 {
		t.Errorf("%d deletions, and 202 of what was taken", n)
	}
	refusals(t, call, at)
	testutil.NoError(t, errors.Join(part.Close(), x.Close()))
	if used, err := devices.Used(0); used == 0 || err != nil {
		t.Errorf("%d bytes are used, %v: C has the tensor", used, err)
	}
	call("finish", uintptr(p))
}
