package msgpack_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/tensor"
)

// What a file asks for has a limit: also by 200,000 items, each of them one byte of the file.
func TestRegression_S4_2_MessagePackHasALimit(t *testing.T) {
	const most = 1 << 20
	x, err := msgpack.Marshal(map[string]any{"x": tensor.Ones(tensor.Uint8, most+1)})
	if err != nil {
		t.Fatal(err)
	}
	many := func(code byte, item ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{code}, 200_000), bytes.Repeat(item, 200_000)...)
	}
	text := append(binary.BigEndian.AppendUint32([]byte{0xdb}, most+1), bytes.Repeat([]byte("t"), most+1)...)
	dict := binary.BigEndian.AppendUint32([]byte{0xdf}, 100_000)
	for i := range 100_000 {
		dict = append(fmt.Appendf(dict, "\xa6%06d", i), 0xc0)
	}
	for name, b := range map[string][]byte{"an array": x, "text": text, "a list": many(0xdd, 0xc0),
		"lists": many(0xdd, 0x90), "a dict": dict} {
		path := filepath.Join(t.TempDir(), "x.msgpack")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, read := range []func(most int64) error{
			func(most int64) error {
				_, err := msgpack.Decode(bytes.NewReader(b), msgpack.Options{MaxBytes: most})
				return err
			},
			func(most int64) error {
				_, _, err := msgpack.Load(path, msgpack.Options{MaxBytes: most})
				return err
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read(most)
			runtime.ReadMemStats(&after)
			limited := errors.Is(err, msgpack.ErrLimit) && strings.Contains(err.Error(), "raise Options.MaxBytes")
			if n := after.TotalAlloc - before.TotalAlloc; !limited || n > 16*most {
				t.Errorf("%s: %v, after %d bytes", name, err, n)
			}
			if err := read(0); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
