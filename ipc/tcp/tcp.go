package tcp

import _ "github.com/shoal-mp/shoal/internal/link/secure" // enters the transport
