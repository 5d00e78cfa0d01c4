package value

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/encoding/python"
)

// OptionsOf parses the keyword arguments of a data set, given as a JSON object on a command
// line. It returns an error if text is not one JSON object.
func OptionsOf(text string) (*python.Dict, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("keyword arguments %.80q: %w", text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("keyword arguments %.80q: got more than one value", text)
	}
	got, err := convertJSON(v)
	if err != nil {
		return nil, err
	}
	args, ok := got.(*python.Dict)
	if !ok {
		return nil, fmt.Errorf("keyword arguments %.80q: want a JSON object such as {\"root\": \"photos\"}", text)
	}
	return args, nil
}

// convertJSON converts a JSON value, decoded with [json.Decoder.UseNumber], to the types that a
// pickle decodes to: a number to an int64 or a float64, and an object to a *[Dict].
func convertJSON(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = convertJSON(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		d := new(python.Dict)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			item, err := convertJSON(v[k])
			if err != nil {
				return nil, err
			}
			if err := d.Set(k, item); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return v, nil
}
