package pickle

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// hostile are pickles that should end in an error, each in its own way.
var hostile = map[string]struct {
	pickle string
	want   error
}{
	"empty":                   {"", ErrFormat},
	"only a protocol":         {"\x80\x04", ErrFormat},
	"a number of letters":     {"Ix\n.", ErrFormat},
	"a long of nothing":       {"L\n.", ErrFormat},
	"a float of a program":    {"F0x1p3\n.", ErrFormat},
	"a str without quotes":    {"Sx\n.", ErrFormat},
	"a str that escapes":      {"S'\\400'\n.", ErrFormat},
	"half an escape":          {"V\\u12\n.", ErrFormat},
	"an escape beyond all":    {"V\\U00110000\n.", ErrFormat},
	"a place of letters":      {"Npx\n.", ErrFormat},
	"get of nothing by line":  {"g7\n.", ErrFormat},
	"a dict of three":         {"(NNNd.", ErrFormat},
	"an object of no class":   {"(o.", ErrFormat},
	"an object of a number":   {"(I1\no.", ErrFormat},
	"an instance":             {"(Vtrue\nios\nsystem\n.", ErrGlobal},
	"another base":            {"ccopy_reg\n_reconstructor\n(c__builtin__\nset\nc__builtin__\nlist\nNtR.", ErrFormat},
	"digits without end":      {"I" + strings.Repeat("1", 1<<16), ErrLimit},
	"protocol 9":              {"\x80\x09N.", ErrFormat},
	"no value":                {"\x80\x04.", ErrFormat},
	"two values":              {"\x80\x04NN.", ErrFormat},
	"a mark left":             {"\x80\x04N(.", ErrFormat},
	"trailing bytes":          {"\x80\x04N.N", ErrFormat},
	"stack below the mark":    {"\x80\x04N(\x85.", ErrFormat},
	"pop of nothing":          {"\x80\x040.", ErrFormat},
	"append to None":          {"\x80\x04NNa.", ErrFormat},
	"set item of a list":      {"\x80\x04]NNs.", ErrFormat},
	"odd items":               {"\x80\x04}(NNNu.", ErrFormat},
	"a list as a key":         {"\x80\x04}]Ns.", ErrFormat},
	"add to a frozenset":      {"\x80\x04(\x91(N\x90.", ErrFormat},
	"get of nothing":          {"\x80\x04h\x00.", ErrFormat},
	"memoize of nothing":      {"\x80\x04\x94.", ErrFormat},
	"a call of an int":        {"\x80\x04K\x01)R.", ErrFormat},
	"a call of a call":        {"\x80\x04c_codecs\nencode\n)R)R.", ErrFormat},
	"arguments in a list":     {"\x80\x04c_codecs\nencode\n]R.", ErrFormat},
	"keywords in a tuple":     {"\x80\x04cbuiltins\nset\n))\x92.", ErrFormat},
	"a name of ints":          {"\x80\x04K\x01K\x02\x93.", ErrFormat},
	"a name without end":      {"\x80\x04c" + strings.Repeat("x", 1<<16), ErrLimit},
	"a codec with an effect":  {"\x80\x04c_codecs\nencode\n\x8c\x01x\x8c\x03zip\x86R.", ErrFormat},
	"a str of 2^63":           {"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", ErrFormat},
	"bytes of 4 GiB":          {"\x80\x04B\xff\xff\xff\xff.", ErrFormat},
	"a long of 2 GiB":         {"\x80\x04\x8b\xff\xff\xff\x7f.", ErrFormat},
	"a str of Latin":          {"\x80\x04\x8c\x01\xe9.", ErrFormat},
	"a Python 2 str of Latin": {"\x80\x02U\x01\xe9.", ErrFormat},
	"state of a str":          {"\x80\x04\x8c\x01xNb.", ErrFormat},
	"a buffer outside":        {"\x80\x05\x97.", ErrFormat},
	"an extension code":       {"\x80\x04\x82\x01.", ErrFormat},
	"a deep list":             {"\x80\x04" + strings.Repeat("]", 2000) + strings.Repeat("a", 1999) + ".", ErrLimit},
	"a deep tuple":            {"\x80\x04N" + strings.Repeat("\x85", 100_000) + ".", ErrLimit},
	"a key of doubling tuples": {"\x80\x04}K\x01" + strings.Repeat("\x94h\x00\x86", 1) +
		strings.Repeat("2\x86", 31) + "Ns.", ErrFormat},
	"os.system":            {"\x80\x04cos\nsystem\n\x8c\x04true\x85R.", ErrGlobal},
	"posix.system":         {"\x80\x04cposix\nsystem\n\x8c\x04true\x85R.", ErrGlobal},
	"eval":                 {"\x80\x02c__builtin__\neval\nX\x01\x00\x00\x001\x85R.", ErrGlobal},
	"getattr":              {"\x80\x04cbuiltins\ngetattr\n)R.", ErrGlobal},
	"a name with a dot":    {"\x80\x04\x8c\x08builtins\x8c\x0dset.__class__\x93.", ErrGlobal},
	"an array of objects":  {"\x80\x04cnumpy\ndtype\n\x8c\x02O8\x85R.", ErrForm},
	"an array with a hole": {"\x80\x04cnumpy.core.numeric\n_frombuffer\n(C\x00cnumpy\ndtype\n\x8c\x02f4\x85RK\x05\x85\x8c\x01CtR.", ErrFormat},
	"an array of 2^63 times 2^63": {"\x80\x04cnumpy.core.numeric\n_frombuffer\n(C\x00cnumpy\ndtype\n\x8c\x02f4\x85R" +
		"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x86\x8c\x01CtR.", ErrFormat},
}

func TestHostile(t *testing.T) {
	for name, c := range hostile {
		if _, err := Unmarshal([]byte(c.pickle), nil, Limits{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestItemLimit bounds what a small pickle may make.
func TestItemLimit(t *testing.T) {
	b := []byte("\x80\x04" + strings.Repeat("(", 10_000) + ".")
	if _, err := Unmarshal(b, nil, Limits{Items: 5000}); !errors.Is(err, ErrLimit) {
		t.Errorf("marks: %v", err)
	}
	b = []byte("\x80\x04](" + strings.Repeat("N", 10_000) + "e.")
	if _, err := Unmarshal(b, nil, Limits{Items: 5000}); !errors.Is(err, ErrLimit) {
		t.Errorf("items: %v", err)
	}
	b, _ = Marshal(make([]byte, 1000), 4)
	if _, err := NewDecoder(bytes.NewReader(b), nil, Limits{Bytes: 500}).Decode(); !errors.Is(err, ErrLimit) {
		t.Errorf("bytes: %v", err)
	}
}

// TestSharedTuples walks a value that has 2^60 leaves in 60 tuples, once each.
func TestSharedTuples(t *testing.T) {
	v, err := Unmarshal([]byte("\x80\x04N"+strings.Repeat("2\x86", 60)+"."), nil, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := Marshal(v, 4); err != nil || len(b) > 1000 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
}

// FuzzUnmarshal wants a value or an error, and of a value that it is the same when written and read
// again.
func FuzzUnmarshal(f *testing.F) {
	for _, b := range captures(f) {
		f.Add(b)
	}
	for _, b := range protocols(f) {
		f.Add(b)
	}
	for _, c := range hostile {
		if len(c.pickle) < 4096 {
			f.Add([]byte(c.pickle))
		}
	}
	small := Limits{Items: 10_000, Depth: 100}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Unmarshal(b, inert, small)
		if err != nil {
			return
		}
		again, err := Marshal(v, 4)
		if errors.Is(err, ErrValue) || errors.Is(err, ErrLimit) { // names with newlines, depth of dtypes
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		w, err := Unmarshal(again, inert, Limits{})
		if err != nil {
			t.Fatalf("written again: %v\n% x", err, again)
		}
		if show(w) != show(v) {
			t.Fatalf(" read %s\nagain %s", show(v), show(w))
		}
	})
}
