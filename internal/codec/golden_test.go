package codec_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/codec"
)

var update = flag.Bool("update", false, "write testdata/golden instead of comparing with it")

// Golden files fix the format: a change of one is a change of the protocol. PROTOCOL.md shows some
// of them.
func TestTheFormatIsTheGoldenOne(t *testing.T) {
	golden(t, "integers", []int64{0, 127, 128, 255, 256, 65535, 65536, 1 << 32, -1, -32, -33, -129, -32769,
		math.MinInt64})
	golden(t, "floats", struct {
		A float32
		B float64
		C complex64
	}{1.5, -0.1, 1 - 2i})
	golden(t, "strings", []string{"", "shoal", strings.Repeat("x", 32), strings.Repeat("y", 256), "\xff"})
	golden(t, "bytes", [][]byte{nil, {}, {1, 2, 3}})
	golden(t, "times", []time.Time{{}, time.Unix(1, 0), time.Unix(1, 2), time.Unix(1<<34, 3)})
	golden(t, "struct", layer{"fc1", weights{0.5, 0.25}, 0.1, true})
	golden(t, "map", map[string]int{"b": 1, "aa": 2, "a": 3})
	golden(t, "pointers", []**int{nil, new((*int)(nil)), new(new(7))})
	golden(t, "blocks", []*buffer{{block: 0x701, length: 16}, nil, {block: 0x902, length: 32},
		{block: 0x701, length: 8}})
	tied := &weight{7}
	golden(t, "once", []*weight{tied, nil, {8}, tied})
	golden(t, "any", []any{nil, 5, "five", []any{true}, layer{Name: "fc2"}})
	golden(t, "errors", []error{nil, io.EOF, errors.New("plain"),
		fmt.Errorf("epoch 1: %w", &batchError{7, io.ErrUnexpectedEOF})})
}

func golden[T any](t *testing.T, name string, v T) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".hex")
	m := encode(t, v)
	if *update {
		if err := os.WriteFile(file, hexLines(fmt.Sprintf("%T", v), m), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := readHex(t, file); !bytes.Equal(m.Body, want) {
		t.Errorf("%s:\n got %x\nwant %x", name, m.Body, want)
	}
	if _, err := decode[T](t, m, &holder{table: m.Blocks}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// hexLines is 16 bytes a line behind a comment with the type and the blocks.
func hexLines(typ string, m codec.Message) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s, blocks %x\n", typ, m.Blocks)
	for i := 0; i < len(m.Body); i += 16 {
		fmt.Fprintf(&out, "% x\n", m.Body[i:min(i+16, len(m.Body))])
	}
	return out.Bytes()
}
