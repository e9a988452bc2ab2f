/** Numbers of OpenSSL's headers (ssl.h, bio.h, x509_vfy.h), under their names there. */

export const SSL_ACCEPT_CONNECTION_NO_BLOCK = 1;
export const SSL_ACCEPT_STREAM_NO_BLOCK = 1;
export const SSL_STREAM_FLAG_UNI = 1;
export const SSL_STREAM_FLAG_NO_BLOCK = 2;
export const SSL_WRITE_FLAG_CONCLUDE = 1;
export const SSL_DEFAULT_STREAM_MODE_NONE = 0;
export const SSL_INCOMING_STREAM_POLICY_ACCEPT = 1;
export const SSL_DOMAIN_FLAG_SINGLE_THREAD = 1;
export const SSL_SHUTDOWN_FLAG_RAPID = 1;
export const SSL_SHUTDOWN_FLAG_NO_STREAM_FLUSH = 2;
export const SSL_SHUTDOWN_FLAG_NO_BLOCK = 4;

export const SSL_STREAM_STATE_OK = 1;
export const SSL_STREAM_STATE_FINISHED = 3;
export const SSL_STREAM_STATE_RESET_REMOTE = 5;

export const SSL_ERROR_WANT_READ = 2;
export const SSL_ERROR_WANT_WRITE = 3;
export const SSL_ERROR_ZERO_RETURN = 6;

export const SSL_VALUE_CLASS_GENERIC = 0;
export const SSL_VALUE_CLASS_FEATURE_REQUEST = 1;
export const SSL_VALUE_QUIC_IDLE_TIMEOUT = 5;
export const SSL_VALUE_EVENT_HANDLING_MODE = 6;
export const SSL_VALUE_STREAM_WRITE_BUF_USED = 8;
export const SSL_VALUE_EVENT_HANDLING_MODE_EXPLICIT = 2;

export const SSL_CTRL_MODE = 33;
export const SSL_MODE_ENABLE_PARTIAL_WRITE = 1;
export const SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2;
export const SSL_CTRL_SET_SESS_CACHE_MODE = 44;
export const SSL_SESS_CACHE_OFF = 0;
export const SSL_CTRL_SET_TLSEXT_HOSTNAME = 55;
export const SSL_VERIFY_NONE = 0;
export const SSL_VERIFY_PEER = 1;
export const SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2;
export const SSL_TLSEXT_ERR_OK = 0;
export const SSL_TLSEXT_ERR_ALERT_FATAL = 2;
export const OPENSSL_NPN_NEGOTIATED = 1;
export const X509_CHECK_FLAG_NEVER_CHECK_SUBJECT = 0x20;
export const X509_V_OK = 0;

export const SSL_CONN_CLOSE_FLAG_LOCAL = 1;
export const SSL_CONN_CLOSE_FLAG_TRANSPORT = 2;
/** `SSL_CONN_CLOSE_INFO`: code, frame type, reason, its length, flags. */
export const CloseInfo = { OCTETS: 40, CODE: 0, REASON: 16, REASON_LENGTH: 24, FLAGS: 32 } as const;
/** `SSL_SHUTDOWN_EX_ARGS`: code, reason. */
export const ShutdownArguments = { OCTETS: 16, CODE: 0, REASON: 8 } as const;

export const BIO_CTRL_DGRAM_SET_MTU = 42;
export const BIO_CTRL_DGRAM_SET_LOCAL_ADDR_ENABLE = 84;
export const BIO_CTRL_DGRAM_SET_CAPS = 87;
export const BIO_DGRAM_CAP_HANDLES_SRC_ADDR = 1;
export const BIO_DGRAM_CAP_HANDLES_DST_ADDR = 2;
export const BIO_DGRAM_CAP_PROVIDES_SRC_ADDR = 4;
export const BIO_DGRAM_CAP_PROVIDES_DST_ADDR = 8;
/** `BIO_MSG`: pointers to the octets, to the peer's address and to ours. */
export const BioMessage = { OCTETS: 40, DATA: 0, LENGTH: 8, PEER: 16, LOCAL: 24, FLAGS: 32 } as const;
/** Size of a `BIO_ADDR`, a union of socket addresses: OpenSSL copies all of it. */
export const BIO_ADDR_OCTETS = 112;
