package watch

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode/utf8"
)

// What another machine says is shown, and must not harm those who look: neither this process nor a
// browser. So it is decoded as what it should be, and anything else in it is dropped. Its size is
// bounded before it is decoded, and the length of each list and text behind it.
const (
	mostBytes     = 4 << 20 // of an event
	mostElements  = 1 << 17 // of all lists in it, so that short texts make no large values
	mostFields    = 1 << 18 // of all objects, likewise
	mostPrograms  = 64
	mostProcesses = 2048 // of all programs; their history is kept
	mostNumbers   = 64   // with a name, of all programs; likewise
	mostItems     = 512  // of a list of anything but numbers and texts
	mostWords     = 4096 // of a list of numbers or texts
	mostText      = 1024 // bytes of a text
	mostStack     = 8192 // and of a stack
)

var errTooMuch = errors.New("it says more than a page can show")

// decode reads what another machine has seen.
func decode(raw []byte) (moment, error) {
	if items, fields := count(raw); items > mostElements || fields > mostFields {
		return moment{}, errTooMuch
	}
	var m moment
	if err := json.Unmarshal(raw, &m); err != nil || m.At == 0 {
		return moment{}, errors.New("it does not say what a shoal watch of this version says")
	}
	m.Hosts, m.Host = nil, ""
	left := max(0, len(m.Domains)-mostPrograms)
	m.Domains = m.Domains[:len(m.Domains)-left]
	tame(reflect.ValueOf(&m).Elem(), mostText)
	known := make(map[string]bool)
	m.left = left
	programs, processes, numbers := m.Domains[:0], 0, 0
	for _, d := range m.Domains {
		if known[d.Address] || !isAddress(d.Address) {
			continue
		}
		known[d.Address] = true
		if processes += len(d.Processes); processes > mostProcesses {
			return moment{}, errTooMuch
		}
		for i := range d.Queues {
			if q := &d.Queues[i]; q.Value != nil {
				if numbers += len(q.Names); numbers > mostNumbers {
					q.Value = nil
				}
			}
		}
		programs = append(programs, d)
	}
	m.Domains = programs
	return m, nil
}

// isAddress reports whether a text is the address of a program, as in /proc/net/unix.
func isAddress(s string) bool {
	return strings.HasPrefix(s, "@shoal/") && len(s) <= 108 &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// count returns how many elements the lists in a text of JSON have, and how many fields its
// objects, or nearly so where it is none.
func count(raw []byte) (items, fields int) {
	var open []byte // brackets
	quoted := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			open = append(open, c)
		case c == ']' || c == '}':
			open = open[:max(0, len(open)-1)]
		}
		if !quoted && (c == ',' || c == '[' || c == '{') && len(open) > 0 { // each begins one
			if open[len(open)-1] == '[' {
				items++
			} else {
				fields++
			}
		}
	}
	return items, fields
}

// tame shortens all texts and lists of a value. A list that is not there has no elements then.
func tame(v reflect.Value, text int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(cut(v.String(), text))
	case reflect.Struct:
		for i := range v.NumField() {
			most := mostText
			if v.Type().Field(i).Name == "Stack" {
				most = mostStack
			}
			if v.Type().Field(i).IsExported() {
				tame(v.Field(i), most)
			}
		}
	case reflect.Slice:
		most := mostItems
		switch kind := v.Type().Elem().Kind(); kind {
		case reflect.Uint8: // bytes, which no page shows
			v.SetZero()
			return
		case reflect.String, reflect.Int, reflect.Int64:
			most = mostWords
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		v.Set(v.Slice(0, min(v.Len(), most)))
		for i := range v.Len() {
			tame(v.Index(i), mostText)
		}
	case reflect.Map:
		tameMap(v)
	}
}

// tameMap keeps a part of a map that is too large, and drops what has too long a key.
func tameMap(v reflect.Value) {
	kept := 0
	for _, key := range v.MapKeys() {
		if kept == mostItems || key.Kind() == reflect.String && key.Len() > mostText {
			v.SetMapIndex(key, reflect.Value{})
			continue
		}
		kept++
		value := reflect.New(v.Type().Elem()).Elem() // what a map has cannot be changed in its place
		value.Set(v.MapIndex(key))
		tame(value, mostText)
		v.SetMapIndex(key, value)
	}
}

// cut shortens a text to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
