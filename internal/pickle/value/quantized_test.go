package value_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// A view of a quantized tensor as bytes, which is advised for other dtypes, is still quantized.
func TestDTypeOf_SaysWhatToSendForAQuantizedTensor(t *testing.T) {
	for name, want := range map[string]string{
		"quint8": ".dequantize()", "qint8": ".dequantize()", "qint32": ".dequantize()", "quint4x2": ".dequantize()",
		"quint2x4": ".dequantize()", "complex32": ".view(torch.uint8)",
	} {
		_, err := value.DTypeOf(value.Named("torch." + name))
		if !errors.Is(err, value.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for class, want := range map[string]bool{
		"torch.QUInt8Storage": true, "torch.QUInt2x4Storage": true, "torch.ByteStorage": false,
		"my.QInt8Storage": false,
	} {
		if got := value.QuantizedStorage(value.Named(class)); got != want {
			t.Errorf("%s: %v", class, got)
		}
	}
}
