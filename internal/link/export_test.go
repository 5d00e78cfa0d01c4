package link

import "encoding/binary"

// Version is the version that both sides say.
func Version() uint16 { return binary.LittleEndian.Uint16(helloBytes[helloName:]) }
