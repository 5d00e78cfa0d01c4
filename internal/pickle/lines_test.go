package pickle

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

// protocols are one value in each protocol, and a dict of Python 2.
func protocols(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/protocols.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for line := range strings.Lines(string(text)) {
		name, code, _ := strings.Cut(strings.TrimSpace(line), " ")
		if all[name], err = base64.StdEncoding.DecodeString(code); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// One value is the same in all protocols, those of text among them: numbers of all sizes, bools,
// text beyond Latin-1, bytes, containers, an object.
func TestRegression_S4_4_PicklesOfProtocols0And1(t *testing.T) {
	all := protocols(t)
	want, err := Unmarshal(all["4"], inert, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"0", "1", "2", "3", "5"} {
		got, err := Unmarshal(all[name], inert, Limits{})
		if err != nil {
			t.Errorf("protocol %s: %v", name, err)
		} else if show(got) != show(want) {
			t.Errorf("protocol %s\n has %s\nwant %s", name, show(got), show(want))
		}
	}
	old, err := Unmarshal(all["py2"], nil, Limits{})
	if d, ok := old.(*Dict); err != nil || !ok || d.Len() != 1 {
		t.Fatalf("%v, %v", old, err)
	} else if v, _ := d.Get("aA\n'\\"); v != "x'y" {
		t.Errorf("%v", show(old))
	}
	for pickle, want := range map[string]any{"I01\n.": true, "I-7\n.": int64(-7), "L7L\n.": int64(7),
		"F-1e3\n.": -1000.0, "V\\u20ac\n.": "€", "\x80\x01I5\n.": int64(5)} {
		if got, err := Unmarshal([]byte(pickle), nil, Limits{}); err != nil || got != want {
			t.Errorf("%q is %v, %v", pickle, got, err)
		}
	}
}
