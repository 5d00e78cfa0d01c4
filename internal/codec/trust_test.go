package codec

import (
	"errors"
	"testing"
)

func TestTrustedTypesAreFoundOutWhenTheyAreUsed(t *testing.T) {
	type wrong struct{ F func() }
	Trust(true)
	defer Trust(false)
	p, err := PlanOf[wrong]()
	if err != nil {
		t.Fatalf("a trusted type is looked at: %v", err)
	}
	var e Encoder
	e.Reset(nil)
	defer e.Done(false)
	if err := p.Encode(&e, wrong{}); !errors.Is(err, ErrType) {
		t.Errorf("encode: %v", err)
	}
	var d Decoder
	d.Reset(Message{Body: []byte{codeNil}}, nil)
	defer d.Done(false)
	if _, err := p.Decode(&d); !errors.Is(err, ErrType) {
		t.Errorf("decode: %v", err)
	}
	if err := Check[wrong](); !errors.Is(err, ErrType) {
		t.Errorf("check: %v", err)
	}
	Trust(false)
	if _, err := PlanOf[wrong](); !errors.Is(err, ErrType) {
		t.Errorf("a plan: %v", err)
	}
}
