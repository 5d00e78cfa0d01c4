package jsonl

import (
	"reflect"
	"testing"
	"unicode/utf8"
)

var scanned = []string{
	`{"ids": [1, -2, 0, -0, 123456789012345678], "w": 0.25, "t": "a", "no": null, "yes": true, "not": false}`,
	` [ ] `, `{}`, `{ "a" : { "b" : [ [ ] , { } ] } }`, `"\u00e9 \" \\ \n é"`, `1e3`, `-1.5E-7`, `12345678901234567`,
	`9223372036854775807`, `-9223372036854775808`, `"\ud83d\ude00"`, `[1,2.0,"x",[true]]`, `[1, 2.5 ,-3e0]`, `[[1],[2,3.5],[]]`, `[1,null]`, `[ 1 ,"]"]`, `[1.5,{"a":[2]}]`,
}

// refusedByScan are lines that are wrong, or that encoding/json must decide.
var refusedByScan = []string{
	``, ` `, `01`, `-`, `1.`, `.5`, `+1`, `1e`, `1e+`, `[1,]`, `[1 2]`, `{"a"}`, `{"a":1,}`, `{a:1}`, `{"a":1,"a":2}`,
	`"open`, `"a\`, `"a\"`, `"\x"`, "\"a\tb\"", `tru`, `nul`, `True`, `NaN`, `1 2`, `{} x`, `[`, `{`, `9223372036854775808`,
	`1e999`, "1\x00",
}

// plain returns v with lists in one form: a list of numbers with a fraction among them has float64
// numbers only.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			v[name] = plain(item)
		}
	case []int64:
		list := make([]any, len(v))
		for i, n := range v {
			list[i] = n
		}
		return list
	case []float64:
		list := make([]any, len(v))
		for i, n := range v {
			list[i] = n
		}
		return list
	case []any:
		fractions, others := 0, 0
		for _, item := range v {
			switch item.(type) {
			case int64:
			case float64:
				fractions++
			default:
				others++
			}
		}
		widen := fractions > 0 && others == 0
		for i, item := range v {
			if n, whole := item.(int64); whole && widen {
				item = float64(n)
			}
			v[i] = plain(item)
		}
	}
	return v
}

// TestScan_DecodesAsEncodingJSON compares the values of the scanner, which must not give up on
// them.
func TestScan_DecodesAsEncodingJSON(t *testing.T) {
	for _, line := range scanned {
		want, err := decodeStrictly([]byte(line))
		got, ok := scan([]byte(line))
		if err != nil || !ok || !reflect.DeepEqual(plain(got), plain(want)) {
			t.Errorf("%s: got %#v %v, want %#v %v", line, got, ok, want, err)
		}
	}
	for _, line := range refusedByScan {
		if got, ok := scan([]byte(line)); ok {
			t.Errorf("%q: got %#v, want nothing", line, got)
		}
	}
}

// FuzzScan checks that every line that the scanner decodes has the value of encoding/json.
func FuzzScan(f *testing.F) {
	for _, line := range append(scanned, refusedByScan...) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if !utf8.Valid(line) {
			return
		}
		got, ok := scan(line)
		if want, err := decodeStrictly(line); ok && (err != nil || !reflect.DeepEqual(plain(got), plain(want))) {
			t.Errorf("%q: got %#v, want %#v %v", line, got, want, err)
		}
	})
}
