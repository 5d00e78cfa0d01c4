package jsonl

import (
	"reflect"
	"testing"
	"unicode/utf8"
)

var scanned = []string{
	`{"ids": [1, -2, 0, -0, 123456789012345678], "w": 0.25, "t": "a", "no": null, "yes": true, "not": false}`,
	` [ ] `, `{}`, `{ "a" : { "b" : [ [ ] , { } ] } }`, `"\u00e9 \" \\ \n é"`, `1e3`, `-1.5E-7`, `12345678901234567`,
	`9223372036854775807`, `-9223372036854775808`, `"\ud83d\ude00"`, `[1,2.0,"x",[true]]`,
}

// refusedByScan are lines that are wrong, or that encoding/json must decide.
var refusedByScan = []string{
	``, ` `, `01`, `-`, `1.`, `.5`, `+1`, `1e`, `1e+`, `[1,]`, `[1 2]`, `{"a"}`, `{"a":1,}`, `{a:1}`, `{"a":1,"a":2}`,
	`"open`, `"a\`, `"a\"`, `"\x"`, "\"a\tb\"", `tru`, `nul`, `True`, `NaN`, `1 2`, `{} x`, `[`, `{`, `9223372036854775808`,
	`1e999`, "1\x00",
}

// TestScan_DecodesAsEncodingJSON compares the values of the scanner, which must not give up on
// them.
func TestScan_DecodesAsEncodingJSON(t *testing.T) {
	for _, line := range scanned {
		want, err := decodeStrictly([]byte(line))
		got, ok := scan([]byte(line))
		if err != nil || !ok || !reflect.DeepEqual(got, want) {
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
		if want, err := decodeStrictly(line); ok && (err != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("%q: got %#v, want %#v %v", line, got, want, err)
		}
	})
}
