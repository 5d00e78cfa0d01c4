package watch

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Limits for reports of other machines. They are untrusted and must harm neither this process nor a
// browser. They are decoded into fixed types, which drops everything else. Their size is limited
// before decoding, and the length of each list and string afterwards.
const (
	mostBytes     = 4 << 20 // bytes in an event
	mostElements  = 1 << 17 // list elements in an event; short JSON may have many
	mostFields    = 1 << 18 // object fields in an event, likewise
	mostPrograms  = 64
	mostProcesses = 2048 // in all programs; their history is kept
	mostNumbers   = 64   // named values in all programs, likewise
	mostItems     = 512  // elements of other lists
	mostWords     = 4096 // elements of lists of numbers or strings
	mostText      = 1024 // bytes in a string
	mostStack     = 8192 // bytes in a stack
)

var errTooMuch = errors.New("reading is too large for the page")

// decode decodes a moment of another machine. It truncates long texts and drops surplus programs
// and values. It returns an error for a moment that is malformed or too large.
func decode(raw []byte) (moment, error) {
	if items, fields := countItems(raw); items > mostElements || fields > mostFields {
		return moment{}, errTooMuch
	}
	var m moment
	if err := json.Unmarshal(raw, &m); err != nil || m.At == 0 {
		return moment{}, errors.New("malformed reading, or another version of shoal watch")
	}
	m.Hosts, m.Host = nil, ""
	left := max(0, len(m.Domains)-mostPrograms)
	m.Domains = m.Domains[:len(m.Domains)-left]
	truncateValue(reflect.ValueOf(&m).Elem(), mostText)
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

// isAddress reports whether s is the address of a domain in the form used in /proc/net/unix.
func isAddress(s string) bool {
	return strings.HasPrefix(s, "@shoal/") && len(s) <= 108 &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// countItems returns the number of list elements and object fields at all levels of a JSON text.
// An empty list or object counts as one with a single item. For invalid JSON it returns
// approximations.
func countItems(raw []byte) (items, fields int) {
	var open []byte // open brackets
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
		if !quoted && (c == ',' || c == '[' || c == '{') && len(open) > 0 { // a new one begins
			if open[len(open)-1] == '[' {
				items++
			} else {
				fields++
			}
		}
	}
	return items, fields
}

// truncateValue truncates all lists of a value, and all strings: itself to text bytes if it is
// one, and those inside to the limits above. Nil lists become empty ones. v must be settable.
func truncateValue(v reflect.Value, text int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(truncateText(v.String(), text))
	case reflect.Struct:
		for i := range v.NumField() {
			most := mostText
			if v.Type().Field(i).Name == "Stack" {
				most = mostStack
			}
			if v.Type().Field(i).IsExported() {
				truncateValue(v.Field(i), most)
			}
		}
	case reflect.Slice:
		most := mostItems
		switch kind := v.Type().Elem().Kind(); kind {
		case reflect.Uint8: // bytes are never shown
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
			truncateValue(v.Index(i), mostText)
		}
	case reflect.Map:
		truncateMap(v)
	}
}

// truncateMap truncates the values of a map. It removes the excess entries and those with too
// long keys.
func truncateMap(v reflect.Value) {
	kept := 0
	for _, key := range v.MapKeys() {
		if kept == mostItems || key.Kind() == reflect.String && key.Len() > mostText {
			v.SetMapIndex(key, reflect.Value{})
			continue
		}
		kept++
		value := reflect.New(v.Type().Elem()).Elem() // map values are not addressable
		value.Set(v.MapIndex(key))
		truncateValue(value, mostText)
		v.SetMapIndex(key, value)
	}
}

// truncateText truncates s to at most n bytes at a rune boundary.
func truncateText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
