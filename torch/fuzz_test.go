package torch

import (
	"bufio"
	"encoding/base64"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// captures are messages that PyTorch wrote.
func captures(t testing.TB) map[string][]byte {
	f, err := os.Open("../internal/pickle/testdata/captures.txt")
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
	return all
}

// TestConn_ReadsWhatPyTorchWrote reads every message of PyTorch's. The memory is gone, so a message
// with memory is an error. Any other message is a value, or an error that says why not.
func TestConn_ReadsWhatPyTorchWrote(t *testing.T) {
	for name, b := range captures(t) {
		i := &importer{ctx: testContext(t), opts: Options{AuthKey: testKey}}
		v, err := i.unmarshal(b)
		switch object := name[strings.LastIndexByte(name, ' ')+1:]; object {
		case "size", "dtype", "device":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case "sparse", "nested", "meta", "subclass", "quant":
			if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrGlobal) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		case "empty":
			if strings.Contains(name, "file_descriptor") != (err == nil) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		default:
			if !errors.Is(err, ErrGone) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		}
		CloseAll(v)
	}
}

// FuzzMessage wants a value or an error of any message that names nothing outside itself.
func FuzzMessage(f *testing.F) {
	empty := &pickle.Object{Class: rebuildEmpty, Args: python.Tuple{untypedStorage}}
	typed := &pickle.Object{Class: rebuildTyped, Args: python.Tuple{empty, named("torch.float32")}}
	for _, v := range []any{
		python.Tuple{1, "x"}, python.NewDict("a", &pickle.List{Items: []any{1}}),
		&python.Array{DType: "<f4", Shape: []int{1}, Data: make([]byte, 4)}, typed,
		&pickle.Object{Class: rebuildTensor,
			Args: python.Tuple{parameterClass, typed, python.Tuple{0, python.Tuple{0, 3}, python.Tuple{3, 1}, true}}},
		newInstance(tokenClass, python.Tuple{"x", "y", "z"}),
	} {
		b, err := pickle.Marshal(v, 4)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, b := range captures(f) {
		f.Add(b)
	}
	outside := []python.Global{rebuildFilename, rebuildProxy, rebuildCUDA}
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, _ := pickle.Unmarshal(b, allowed().Find, pickle.Limits{})
		for o := range pickle.Each[*pickle.Object](tree) {
			if slices.Contains(outside, o.Class) {
				return
			}
		}
		v, err := (&importer{ctx: t.Context()}).unmarshal(b) // without a key no descriptor is fetched
		if err == nil {
			CloseAll(v)
		}
	})
}
