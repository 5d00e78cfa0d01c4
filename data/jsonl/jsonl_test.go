package jsonl_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/jsonl"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func written(t testing.TB, text string) string {
	path := filepath.Join(t.TempDir(), "train.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, o jsonl.Options, paths ...string) data.DatasetCloser {
	t.Helper()
	s, err := jsonl.Open(o, paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOpen_HasTheLinesOfFiles(t *testing.T) {
	one := written(t,
		"{\"text\": \"grüße\", \"n\": 1, \"x\": 0.5, \"ids\": [1, 2, 3], \"deep\": {\"ok\": true, \"none\": "+
			"null}}\r\n\n  \n{\"text\": \"\"}")
	two := written(t, "\n[1, 2.5]\n7\n\"text\"\n1e400\n")
	s := opened(t, jsonl.Options{}, one, two)
	if s.Len() != 6 {
		t.Fatalf("%d lines", s.Len())
	}
	value := func(i int) any {
		t.Helper()
		v, err := data.Value(t.Context(), s, i)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := value(0).(map[string]any)
	ids := first["ids"].(*tensor.Tensor)
	if first["text"] != "grüße" || first["n"] != int64(1) || first["x"] != 0.5 ||
		ids.DType() != tensor.Int64 || ids.Numel() != 3 {
		t.Errorf("line 1: %v", first)
	}
	if deep := first["deep"].(map[string]any); deep["ok"] != true || deep["none"] != nil {
		t.Errorf("line 1: %v", deep)
	}
	if v := value(1).(map[string]any); v["text"] != "" {
		t.Errorf("line 4: %v", v)
	}
	if v := value(2).(*tensor.Tensor); v.DType() != tensor.Float32 || tensor.Data[float32](v)[1] != 2.5 {
		t.Errorf("a list: %v", v)
	}
	if value(3) != int64(7) || value(4) != "text" || value(5) != math.Inf(1) {
		t.Errorf("%v, %v, %v", value(3), value(4), value(5))
	}
}

func TestOpen_ColumnsAreFieldsOfSamples(t *testing.T) {
	s := opened(t, jsonl.Options{Columns: []row.Column{{Name: "y"},
		{Name: "x", DType: new(tensor.Float32)}}}, written(t, `{"x": [1, 2], "y": 3, "text": "none"}`))
	sample, err := s.Get(t.Context(), 0)
	if err != nil || len(sample) != 2 || sample[0].DType() != tensor.Int64 ||
		sample[1].DType() != tensor.Float32 || sample[1].Numel() != 2 {
		t.Errorf("%v, %v", sample, err)
	}
	list := opened(t, jsonl.Options{}, written(t, "[1, 2]\n"))
	if sample, err := list.Get(t.Context(), 0); err != nil || len(sample) != 1 || sample[0].Numel() != 2 {
		t.Errorf("a list: %v, %v", sample, err)
	}
}

// TestOpen_EveryJSONTypeIsAValueOrAnError has each type of JSON, alone and in lists. want is empty
// for lines that are errors.
func TestOpen_EveryJSONTypeIsAValueOrAnError(t *testing.T) {
	for line, want := range map[string]string{
		`null`: "<nil> <nil>", `true`: "bool true", `0`: "int64 0", `-0`: "int64 0",
		`9223372036854775807`: "int64 9223372036854775807", `-9223372036854775808`: "int64 -9223372036854775808",
		`9223372036854775808`: "", `1.0`: "float64 1", `1e2`: "float64 100", `5e-324`: "float64 5e-324",
		`1e400`: "float64 +Inf",
		`NaN`:   "", `Infinity`: "", `"é\u00e9\ud83d\ude00"`: "string éé😀", `"\ud83d"`: "string \ufffd",
		`""`:               "string ",
		`"a` + "\t" + `b"`: "", `'a'`: "", `[]`: "*tensor.Tensor float32 [0]", `[1,2]`: "*tensor.Tensor int64 [2]",
		`[1,2.5]`: "*tensor.Tensor float32 [2]", `[true,false]`: "*tensor.Tensor bool [2]",
		`[[1,2],[3,4]]`: "*tensor.Tensor int64 [2 2]", `["a","b"]`: "[]interface {} [a b]",
		`["a",null]`: "[]interface {} [a <nil>]", `{}`: "map[string]interface {} map[]",
		`{"a":{"b":null}}`: "map[string]interface {} map[a:map[b:<nil>]]",
		`{"a":1,"a":2}`:    "map[string]interface {} map[a:2]",
		`[1,]`:             "", `{"a":1,}`: "", `undefined`: "", `0x10`: "", `01`: "", `+1`: "", `1_000`: "",
	} {
		s := opened(t, jsonl.Options{}, written(t, line+"\n"))
		v, err := data.Value(t.Context(), s, 0)
		if want == "" {
			testutil.ErrorIs(t, err, jsonl.ErrValue)
			continue
		}
		got := fmt.Sprintf("%T %v", v, v)
		if x, ok := v.(*tensor.Tensor); ok {
			got = fmt.Sprintf("%T %v %v", v, x.DType(), x.Shape())
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", line, got, err, want)
		}
	}
}

// TestOpen_BadLinesAreNamed counts lines as editors do.
func TestOpen_BadLinesAreNamed(t *testing.T) {
	long := `"` + strings.Repeat("x", 100_000) + `"`
	for name, c := range map[string]struct {
		line string
		o    jsonl.Options
		want error
	}{
		"no JSON":            {"{'a': 1}", jsonl.Options{}, jsonl.ErrValue},
		"cut":                {`{"a": 1`, jsonl.Options{}, jsonl.ErrValue},
		"two":                {`{"a": 1} {"b": 2}`, jsonl.Options{}, jsonl.ErrValue},
		"something behind":   {`{"a": 1}}`, jsonl.Options{}, jsonl.ErrValue},
		"NaN":                {`{"a": NaN}`, jsonl.Options{}, jsonl.ErrValue},
		"beyond int64":       {`{"a": 9223372036854775808}`, jsonl.Options{}, jsonl.ErrValue},
		"Latin":              {"{\"a\": \"\xe9\"}", jsonl.Options{}, jsonl.ErrValue},
		"too long":           {long, jsonl.Options{MaxLine: 1000}, jsonl.ErrLong},
		"no columns":         {"[1]", jsonl.Options{Columns: []row.Column{{Name: "a"}}}, jsonl.ErrValue},
		"without the column": {`{"b": 1}`, jsonl.Options{Columns: []row.Column{{Name: "a"}}}, row.ErrColumn},
		"deeper than is right": {strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), jsonl.Options{},
			jsonl.ErrValue},
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t, c.o, written(t, "{\"a\": 1}\n\n\n"+c.line+"\n{\"a\": 2}\n"))
			for i := range s.Len() {
				_, err := data.Value(t.Context(), s, i)
				at, bad := errors.AsType[*row.Error](err)
				if bad != (i == 1) || bad && (at.Number != 4 || !errors.Is(err, c.want) ||
					!strings.Contains(err.Error(), "train.jsonl: line 4: ")) {
					t.Errorf("line %d: %v", i, err)
				}
			}
			if _, err := s.Get(t.Context(), 1); err == nil {
				t.Error("Get has a sample of it")
			}
		})
	}
}

func TestOpen_FilesWithoutLinesAreErrors(t *testing.T) {
	if _, err := jsonl.Open(jsonl.Options{}, written(t, "\n \n")); !errors.Is(err, jsonl.ErrEmpty) {
		t.Errorf("blank lines: %v", err)
	}
	if _, err := jsonl.Open(jsonl.Options{}); !errors.Is(err, jsonl.ErrEmpty) {
		t.Errorf("no files: %v", err)
	}
	if _, err := jsonl.Open(jsonl.Options{}, written(t, "1"), "nowhere.jsonl"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := written(t, strings.Repeat("1\n", 1000))
	s := opened(t, jsonl.Options{}, path)
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := data.Value(t.Context(), s, 900); err == nil {
		t.Error("a line that is gone was read")
	}
	for _, i := range []int{-1, 1000} {
		if _, err := data.Value(t.Context(), s, i); err == nil {
			t.Errorf("line %d was there", i)
		}
	}
}

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "jsonl")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "train.jsonl")
	os.WriteFile(path, []byte("{\"text\": \"a\", \"label\": 0}\n{\"text\": \"b\", \"label\": 1}\n"), 0o600)

	train, err := jsonl.Open(jsonl.Options{}, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer train.Close()
	line, err := data.Value(context.Background(), train, 1)
	fmt.Println(train.Len(), line, err)
	// Output: 2 map[label:1 text:b] <nil>
}

// FuzzOpen wants an error or a value of every line.
func FuzzOpen(f *testing.F) {
	f.Add("{\"a\": [1, 2.5, \"x\"]}\n\n7")
	f.Add("[[1], [2, 3], []]\r\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := jsonl.Open(jsonl.Options{MaxLine: 1 << 16}, written(t, text))
		if err != nil {
			return
		}
		defer s.Close()
		lines := 0
		for _, line := range strings.Split(text, "\n") {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if s.Len() != lines {
			t.Fatalf("%d lines, not %d", s.Len(), lines)
		}
		for i := range s.Len() {
			data.Value(t.Context(), s, i)
			s.Get(t.Context(), i)
		}
	})
}

// Files of Windows begin with a mark, and many are compressed.
func TestOpen_ReadsMarkedAndCompressedFiles(t *testing.T) {
	const lines = "{\"n\": 1}\n\n{\"n\": 2}\n"
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	testutil.Must(w.Write([]byte("\xef\xbb\xbf" + lines)))
	testutil.NoError(t, w.Close())
	z := testutil.Must(zstd.NewWriter(nil))
	for name, text := range map[string]string{"mark": "\xef\xbb\xbf" + lines, "gzip": gz.String(),
		"zstd": string(z.EncodeAll([]byte(lines), nil))} {
		s := opened(t, jsonl.Options{}, written(t, text))
		for i := range 2 {
			v := testutil.Value(data.Value(t.Context(), s, i))(t)
			if s.Len() != 2 || v.(map[string]any)["n"] != int64(i+1) {
				t.Errorf("%s: %d lines, line %d is %v", name, s.Len(), i, v)
			}
		}
	}
	path := written(t, gz.String()[:gz.Len()-10])
	_, err := jsonl.Open(jsonl.Options{}, path)
	testutil.ErrorIs(t, err, io.ErrUnexpectedEOF)
	testutil.ErrorContains(t, err, path)
	_, err = jsonl.Open(jsonl.Options{}, written(t, "\xff\xfe{\x00}\x00"))
	testutil.ErrorIs(t, err, jsonl.ErrValue)
	testutil.ErrorContains(t, err, "UTF-16")
	_, err = jsonl.Open(jsonl.Options{},
		written(t, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"))
	testutil.ErrorContains(t, err, "git lfs pull")
}
