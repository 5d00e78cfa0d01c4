package codec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// readers decode a message as several types. Each returns the bytes of what it read and, of what
// those bytes read as, the bytes again: a value that was accepted must survive.
var readers = map[string]func(t testing.TB, body []byte) (once, twice []byte, err error){
	"int8":         reread[int8],
	"uint64":       reread[uint64],
	"float32":      reread[float32],
	"string":       reread[string],
	"[]byte":       reread[[]byte],
	"[][]int":      reread[[][]int],
	"complex128":   reread[complex128],
	"time.Time":    reread[time.Time],
	"map":          reread[map[string]map[int8]bool],
	"job":          reread[job],
	"*tree":        reread[*tree],
	"**int":        reread[**int],
	"forest":       reread[forest],
	"any":          reread[any],
	"*model":       reread[*model],
	"error":        reread[error],
	"[]*buffer":    reread[[]*buffer],
	"[]wide":       reread[[][4096]*int],
	"[]struct{}":   reread[[]struct{}],
	"map of array": reread[map[[2]float32]*string],
}

// three blocks stand in the table of every hostile message.
var threeBlocks = []arena.Handle{11, 22, 33}

func reread[T any](t testing.TB, body []byte) (once, twice []byte, err error) {
	v, err := decode[T](t, codec.Message{Body: body, Blocks: threeBlocks}, &holder{table: threeBlocks})
	if err != nil {
		return nil, nil, err
	}
	m := encode(t, v)
	again, err := decode[T](t, m, &holder{table: m.Blocks})
	if err != nil {
		t.Fatalf("%x was read and written as %x, which is refused: %v", body, m.Body, err)
	}
	return m.Body, encode(t, again).Body, nil
}

// knownErrors are those that a Decoder may return for any bytes.
var knownErrors = []error{codec.ErrFormat, codec.ErrOverflow, codec.ErrTooDeep, codec.ErrTooLong, codec.ErrUnknownType}

func checkReaders(t *testing.T, body []byte) {
	t.Helper()
	for name, read := range readers {
		once, twice, err := read(t, body)
		if err != nil && !isOneOf(err, knownErrors) {
			t.Errorf("%x as %s: %v is none of the package's errors", body, name, err)
		}
		if !bytes.Equal(once, twice) {
			t.Errorf("%x as %s is written as %x, then as %x", body, name, once, twice)
		}
	}
}

func isOneOf(err error, list []error) bool {
	for _, want := range list {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

func FuzzDecode(f *testing.F) {
	for _, body := range hostileBodies(f) {
		f.Add(body)
	}
	f.Add(encode(f, job{Layers: []layer{{}}, Tags: map[string]int{"a": 1}, Extra: []any{1, "x"},
		Cause: os.ErrNotExist}).Body)
	f.Add(encode(f, &tree{1, &tree{}, &tree{}}).Body)
	w := &weight{1}
	f.Add(encode(f, &model{First: w, Tied: w, All: []*weight{{2}, w}}).Body)
	f.Add(encode(f, []error{io.EOF, &batchError{7, io.ErrUnexpectedEOF}, nil}).Body)
	f.Add(encode(f, []*buffer{{block: 1}, {block: 2}, {block: 1}}).Body)
	f.Fuzz(func(t *testing.T, body []byte) { checkReaders(t, body) })
}

// hostileBodies reads testdata/hostile: files of hexadecimal digits with comments behind #.
func hostileBodies(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/hostile/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d hostile files, %v", len(files), err)
	}
	bodies := make(map[string][]byte)
	for _, file := range files {
		bodies[filepath.Base(file)] = readHex(t, file)
	}
	return bodies
}

func readHex(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	body, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return body
}

func TestHostileBodiesAreRefusedByEveryPlan(t *testing.T) {
	for name, body := range hostileBodies(t) {
		for kind, read := range readers {
			if _, _, err := read(t, body); !isOneOf(err, knownErrors) {
				t.Errorf("%s as %s: %v", name, kind, err)
			}
		}
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	body := encode(t, job{Net: &layer{Name: "n", Weights: weights{1}}, Extra: map[string]any{"x": 1},
		Cause: errors.Join(codeError(1), errDiverged)}).Body
	for n := range body {
		if _, err := decode[job](t, codec.Message{Body: body[:n]}, nil); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("the first %d of %d bytes: %v", n, len(body), err)
		}
	}
}

func TestBytesAfterTheValueAreAnError(t *testing.T) {
	_, err := decode[int](t, codec.Message{Body: []byte{5, 6}}, nil)
	if !errors.Is(err, codec.ErrFormat) || !strings.Contains(err.Error(), "at byte 1") {
		t.Errorf("got %v", err)
	}
}

func TestAnErrorSaysWhereAndInWhichField(t *testing.T) {
	m := encode(t, struct{ A, B string }{"x", "y"})
	type other struct {
		A string
		B int
	}
	_, err := decode[other](t, m, nil)
	const want = "decode other: field B: wire: malformed message at byte 3: want an integer, found a string"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// A length of four bytes announces more than there can be; nothing may be allocated for it.
func TestAnnouncedLengthsBuyNoMemory(t *testing.T) {
	for _, code := range []byte{0xc6, 0xdb, 0xdd, 0xdf, 0xc9} {
		body := binary.BigEndian.AppendUint32([]byte{code}, math.MaxUint32)
		for kind, read := range readers {
			grown := allocated(func() {
				if _, _, err := read(t, body); err == nil {
					t.Errorf("%x as %s was accepted", body, kind)
				}
			})
			if grown > 1<<20 {
				t.Errorf("%x as %s: %d bytes allocated", body, kind, grown)
			}
		}
	}
}

// Each byte announces an element of 64 KiB in memory; the first is already malformed.
func TestSmallElementsBuyLittleMemory(t *testing.T) {
	body := append(binary.BigEndian.AppendUint32([]byte{0xdd}, 1<<20), bytes.Repeat([]byte{0xc0}, 1<<20)...)
	var err error
	grown := allocated(func() { _, _, err = reread[[]envelope](t, body) })
	if err == nil || grown > 64<<20 {
		t.Errorf("%d bytes allocated for a message of 1 MiB, %v", grown, err)
	}
}

// Each of 90 levels announces as many slices as bytes follow.
func TestNestedLengthsBuyLittleMemory(t *testing.T) {
	var body []byte
	for range 90 {
		body = binary.BigEndian.AppendUint32(append(body, 0xdd), 1<<20)
	}
	body = append(body, make([]byte, 1<<20)...)
	var err error
	grown := allocated(func() { _, _, err = reread[forest](t, body) })
	if err == nil || grown > 64<<20 {
		t.Errorf("%d bytes allocated for a message of 1 MiB, %v", grown, err)
	}
}

// An envelope is large and reads itself from one byte, which must not be nil.
type envelope struct{ Bulk [1 << 16]byte }

func (e *envelope) MarshalWire(enc *codec.Encoder) error   { enc.Bool(true); return nil }
func (e *envelope) UnmarshalWire(dec *codec.Decoder) error { _, err := dec.Bool(); return err }

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDepthIsLimited(t *testing.T) {
	cycle := &tree{}
	cycle.Left = cycle
	if err := encodeError(t, cycle, codec.Limits{}); !errors.Is(err, codec.ErrTooDeep) {
		t.Errorf("a cycle: %v", err)
	}
	var anyCycle = make([]any, 1)
	anyCycle[0] = anyCycle
	if err := encodeError(t, anyCycle, codec.Limits{}); !errors.Is(err, codec.ErrTooDeep) {
		t.Errorf("a cycle through any: %v", err)
	}
	if err := encodeError(t, forest{{{}}}, codec.Limits{Depth: 2}); !errors.Is(err, codec.ErrTooDeep) {
		t.Errorf("three levels of two: %v", err)
	}
	if err := encodeError(t, forest{{{}}}, codec.Limits{Depth: 3}); err != nil {
		t.Errorf("three levels of three: %v", err)
	}
	for _, n := range []int{101, 1 << 20} {
		if _, err := decode[forest](t, codec.Message{Body: bytes.Repeat([]byte{0x91}, n)},
			nil); !errors.Is(err, codec.ErrTooDeep) {
			t.Errorf("%d levels: %v", n, err)
		}
	}
}

func TestDeepValuesOfUnknownTypesAreSkippedFlat(t *testing.T) {
	// [0, "text", [], [["no such type", [[[[…]]]]]]] is an error whose cause is not known here.
	var e codec.Encoder
	e.ArrayLen(4)
	e.Uint(0)
	e.String("text")
	e.ArrayLen(0)
	e.ArrayLen(1)
	e.ArrayLen(2)
	e.String("no such type")
	for range 1 << 20 {
		e.ArrayLen(1)
	}
	e.Nil()
	got, err := decode[error](t, e.Message(), nil)
	if err != nil || got.Error() != "text" {
		t.Errorf("arrived %v, %v", got, err)
	}
}

func TestMessagesBeyondTheLimitAreTooLong(t *testing.T) {
	small := codec.Limits{Bytes: 100}
	for name, err := range map[string]error{
		"string":  encodeError(t, strings.Repeat("x", 101), small),
		"bytes":   encodeError(t, make([]byte, 101), small),
		"slice":   encodeError(t, make([]int, 101), small),
		"map":     encodeError(t, map[string]string{"a": strings.Repeat("x", 101)}, small),
		"struct":  encodeError(t, struct{ A, B [40]byte }{}, codec.Limits{Bytes: 50}),
		"numbers": encodeError(t, make([]float64, 20), small),
	} {
		if !errors.Is(err, codec.ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := codec.Decoder{Limits: small}
	d.Reset(codec.Message{Body: make([]byte, 101)}, nil)
	if _, err := d.Int(); !errors.Is(err, codec.ErrTooLong) {
		t.Errorf("decode: %v", err)
	}
	if err := d.Finish(); !errors.Is(err, codec.ErrTooLong) {
		t.Errorf("Finish: %v", err)
	}
}

func TestNumbersThatDoNotFitAreOverflow(t *testing.T) {
	refuse := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, codec.ErrOverflow) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := decode[int8](t, encode(t, 128), nil)
	refuse("128 as int8", err)
	_, err = decode[uint8](t, encode(t, 256), nil)
	refuse("256 as uint8", err)
	_, err = decode[uint](t, encode(t, -1), nil)
	refuse("-1 as uint", err)
	_, err = decode[int64](t, encode(t, uint64(math.MaxInt64+1)), nil)
	refuse("2^63 as int64", err)
	_, err = decode[float32](t, encode(t, 0.1), nil)
	refuse("0.1 of 64 bits as float32", err)
	_, err = decode[float32](t, encode(t, math.MaxFloat64), nil)
	refuse("MaxFloat64 as float32", err)
}

func TestWiderFormsOfOtherWritersAreAccepted(t *testing.T) {
	for _, body := range []string{"05", "cc05", "cd0005", "ce00000005", "cf0000000000000005", "d005",
		"d10005", "d200000005", "d30000000000000005"} {
		b, _ := hex.DecodeString(body)
		if v, err := decode[uint8](t, codec.Message{Body: b}, nil); v != 5 || err != nil {
			t.Errorf("%s: %d, %v", body, v, err)
		}
	}
	if v, err := decode[float32](t, encode(t, 0.5), nil); v != 0.5 || err != nil {
		t.Errorf("0.5 of 64 bits as float32: %v, %v", v, err)
	}
	if v, err := decode[float64](t, encode(t, float32(0.5)), nil); v != 0.5 || err != nil {
		t.Errorf("0.5 of 32 bits as float64: %v, %v", v, err)
	}
}
