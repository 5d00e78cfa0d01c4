package pickle

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shoal-mp/shoal/encoding/python"
)

// inert allows every name and calls none.
func inert(Global) (Constructor, bool) { return nil, true }

// captures are pickles that PyTorch wrote, by "version strategy object".
func captures(t testing.TB) map[string][]byte {
	f, err := os.Open("testdata/captures.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]byte{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) == 4 {
			b, err := base64.StdEncoding.DecodeString(fields[3])
			if err != nil {
				t.Fatal(err)
			}
			all[strings.Join(fields[:3], " ")] = b
		}
	}
	if len(all) < 90 {
		t.Fatalf("%d captures, where there should be about 100", len(all))
	}
	return all
}

// show is a text that is the same for equal values, cycles included.
func show(v any) string {
	var b strings.Builder
	seen := map[any]int{}
	var put func(v any)
	put = func(v any) {
		if at := identityOf(v); at != nil {
			if n, ok := seen[at]; ok {
				fmt.Fprintf(&b, "@%d", n)
				return
			}
			seen[at] = len(seen)
		}
		switch v := v.(type) {
		case *Array, *Scalar, *ByteArray, *numpyType:
			fmt.Fprintf(&b, "%T%v", v, reflect.ValueOf(v).Elem())
			return
		case *big.Int:
			fmt.Fprintf(&b, "big%v", v)
			return
		case *Dict:
			fmt.Fprintf(&b, "%v", v.Ordered)
		case *Set:
			fmt.Fprintf(&b, "%v", v.Frozen)
		case *Object:
			fmt.Fprintf(&b, "%v %v %v", v.Class, v.New, v.HasState)
		}
		if identityOf(v) == nil {
			if _, empty := v.(Tuple); !empty {
				fmt.Fprintf(&b, "%T(%#v)", v, v)
				return
			}
		}
		fmt.Fprintf(&b, "%T[", v)
		for child := range eachChild(v) {
			put(child)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	}
	put(v)
	return b.String()
}

// values draws any value that can be written. Names are of a module that no table has.
func values(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 10
		if depth > 0 {
			kinds = 18
		}
		many := func() []any { return rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "items") }
		keys := func() []any { return rapid.SliceOfN(values(0), 0, 4).Draw(t, "keys") }
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			return rapid.Int64().Draw(t, "int")
		case 3:
			n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 9, 400).Draw(t, "big"))
			n.SetBit(n, 70, 1)
			if rapid.Bool().Draw(t, "negative") {
				n.Neg(n)
			}
			return n
		case 4:
			return rapid.Float64().Draw(t, "float")
		case 5:
			return complex(rapid.Float64().Draw(t, "re"), rapid.Float64().Draw(t, "im"))
		case 6:
			return rapid.String().Draw(t, "str")
		case 7:
			return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")...)
		case 8:
			return Global{Module: "m.n", Name: rapid.StringMatching(`[a-z_.]{1,9}`).Draw(t, "name")}
		case 9:
			return Tuple{}
		case 10:
			return Tuple(append([]any{}, many()...))
		case 11:
			return &List{many()}
		case 12:
			d := &Dict{Ordered: rapid.Bool().Draw(t, "ordered")}
			for i, v := range many() {
				if err := d.Set(fmt.Sprint(i), v); err != nil {
					t.Fatal(err)
				}
			}
			return d
		case 13:
			s, err := python.NewSet(rapid.Bool().Draw(t, "frozen"), keys()...)
			if err != nil {
				t.Fatal(err)
			}
			return s
		case 14:
			return &ByteArray{Bytes: append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "bytearray")...)}
		case 15:
			return &Object{Class: Global{Module: "m", Name: "call"}, New: rapid.Bool().Draw(t, "new"),
				Args:     append(Tuple{}, many()...),
				HasState: true, State: values(depth-1).Draw(t, "state"), List: many()}
		case 16:
			n := rapid.IntRange(0, 5).Draw(t, "n")
			return &Array{DType: "<f4", Shape: []int{n, 2}, Fortran: rapid.Bool().Draw(t, "fortran"),
				Data: append([]byte{}, make([]byte, 8*n)...)}
		default:
			same := &List{many()}
			same.Items = append(same.Items, same)
			return Tuple{same, same}
		}
	})
}

// TestRoundTrip writes any value in any protocol and reads the same.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "v")
		protocol := rapid.IntRange(minProtocol, maxProtocol).Draw(t, "protocol")
		b, err := Marshal(v, protocol)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Unmarshal(b, inert, Limits{})
		if err != nil {
			t.Fatalf("%v\n% x", err, b)
		}
		if show(got) != show(v) {
			t.Fatalf("protocol %d:\n read %s\nwrote %s", protocol, show(got), show(v))
		}
	})
}

// TestCaptures reads everything that old and new PyTorch wrote, and writes it so that it reads the
// same.
func TestCaptures(t *testing.T) {
	for name, b := range captures(t) {
		v, err := Unmarshal(b, inert, Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := Marshal(v, 4)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w, err := Unmarshal(again, inert, Limits{}); err != nil || show(w) != show(v) {
			t.Errorf("%s: %v\n read %s\nagain %s", name, err, show(v), show(w))
		}
	}
}

// TestTensorTree looks into one capture: a view, whose storage is not called but described.
func TestTensorTree(t *testing.T) {
	v, err := Unmarshal(captures(t)["2.14.1 file_descriptor two_views"], inert, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	pair := v.(Tuple)
	storage := func(i int) *Object { return pair[i].(*Object).Args[1].(*Object).Args[0].(*Object) }
	if storage(0) != storage(1) {
		t.Error("two views of one storage do not have one storage")
	}
	if got := storage(0).Class.String(); got != "torch.multiprocessing.reductions.rebuild_storage_fd" {
		t.Errorf("storage is made by %s", got)
	}
}

// TestRefusedName wants the name in the error, and the rest of the value beside it.
func TestRefusedName(t *testing.T) {
	b := []byte("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x08rm -rf /\x85R\x5d\x86.")
	v, err := Unmarshal(b, nil, Limits{})
	var refused *GlobalError
	if !errors.As(err, &refused) || refused.Global != (Global{Module: "os", Name: "system"}) ||
		!errors.Is(err, ErrGlobal) {
		t.Fatalf("error %v", err)
	}
	if o, ok := v.(Tuple)[0].(*Object); !ok || o.Args[0] != "rm -rf /" {
		t.Errorf("value %v", v)
	}
}

// TestWithoutAForm wants what a pickle names beside a value that has no form in Go: a caller gives
// it back.
func TestWithoutAForm(t *testing.T) {
	const promise = "cmod\nname\n)R"
	dtype := func(code string) string { return "cnumpy\ndtype\n\x8c\x02" + code + "\x85R" }
	allowed := Table{{Module: "mod", Name: "name"}: nil}.Find
	for name, b := range map[string]string{
		"an array of str": "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R" +
			"(K\x01K\x01\x85" + dtype("O8") + "\x89]" + promise + "atb" + promise + "\x86.",
		"a scalar": "cnumpy.core.multiarray\nscalar\n" + dtype("M8") + "C\x08datetime\x86R" + promise +
			promise + "\x87.",
	} {
		v, err := Unmarshal([]byte("\x80\x04"+b), allowed, Limits{})
		found := 0
		for o := range Each[*Object](v) {
			if o.Class.Name == "name" {
				found++
			}
		}
		if !errors.Is(err, ErrForm) || found != 2 {
			t.Errorf("%s: %v, with %d of 2 names: %v", name, err, found, v)
		}
	}
}

// TestStream reads pickles from a stream that does not end after them.
func TestStream(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for i := range 3 {
			b, _ := Marshal(Tuple{i, "x"}, 4)
			w.Write(b)
		}
	}()
	d := NewDecoder(r, nil, Limits{})
	for i := range 3 {
		v, err := d.Decode()
		if err != nil || v.(Tuple)[0] != int64(i) {
			t.Fatalf("pickle %d: %v, %v", i, v, err)
		}
	}
	w.Close()
	if _, err := d.Decode(); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

// TestPythonKeys has equal what Python has equal.
func TestPythonKeys(t *testing.T) {
	d := new(Dict)
	for i, k := range []any{1, 1.0, true, complex(1, 0), big.NewInt(1), "1", []byte("1"), Tuple{1}, Tuple{1.0}} {
		if err := d.Set(k, i); err != nil {
			t.Fatal(err)
		}
	}
	if d.Len() != 4 {
		t.Errorf("%d keys: %v", d.Len(), d)
	}
	if err := d.Set(&List{}, 0); !errors.Is(err, python.ErrKey) {
		t.Errorf("a list as a key: %v", err)
	}
}

// TestUnwritable refuses what has no form.
func TestUnwritable(t *testing.T) {
	loop := Tuple{nil}
	loop[0] = loop
	for _, c := range []struct {
		v    any
		want error
	}{
		{make(chan int), ErrValue}, {"\xff", ErrValue}, {loop, ErrLimit}, {Global{Module: "a\nb", Name: "c"}, ErrValue},
		{&Array{DType: "<f4", Shape: []int{2}, Fortran: false, Data: nil}, ErrValue},
		{&Scalar{DType: "<V4", Data: make([]byte, 4)}, ErrValue},
	} {
		if _, err := Marshal(c.v, 2); !errors.Is(err, c.want) {
			t.Errorf("%T: %v", c.v, err)
		}
	}
	if _, err := Marshal(nil, 6); !errors.Is(err, ErrValue) {
		t.Errorf("protocol 6: %v", err)
	}
}

// TestWrite streams large bytes from where they are, and reads them from a stream.
func TestWrite(t *testing.T) {
	v := Tuple{"before", bytes.Repeat([]byte("0123456789"), 50_000),
		&ByteArray{Bytes: bytes.Repeat([]byte{1}, 100_000)}, "after"}
	for protocol := minProtocol; protocol <= maxProtocol; protocol++ {
		want, err := Marshal(v, protocol)
		var got bytes.Buffer
		if err = errors.Join(err, Write(&got, v, protocol)); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("protocol %d: %d bytes, not the %d of Marshal; %v", protocol, got.Len(), len(want), err)
		}
		again, err := Read(&got, int64(got.Len()), inert, Limits{})
		if err != nil || show(again) != show(v) {
			t.Errorf("protocol %d: %v", protocol, err)
		}
	}
	if err := Write(full{}, v, maxProtocol); !errors.Is(err, errFull) {
		t.Errorf("to what is full: %v", err)
	}
}

var errFull = errors.New("full")

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestAMappedFileOfNumpyIsAnArray reads what Python pickles of a numpy.memmap: its elements.
func TestAMappedFileOfNumpyIsAnArray(t *testing.T) {
	const b = "\x80\x05\x95\x94\x00\x00\x00\x00\x00\x00\x00\x8c\x16numpy._core.multiarray\x94\x8c\x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94" +
		"\x8c\x06memmap\x94\x93\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01K\x03\x85\x94h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02i4\x94\x89\x88\x87\x94" +
		"R\x94(K\x03\x8c\x01<\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94b\x89C\x0c\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x94t\x94b."
	v, err := NewDecoder(strings.NewReader(b), nil, Limits{}).Decode()
	want := &Array{DType: "<i4", Shape: []int{3}, Data: []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}}
	if err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("%v, %v, not %v", v, err, want)
	}
}
