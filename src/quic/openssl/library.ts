/**
 * OpenSSL's QUIC functions, which official binaries of Node 24 and later contain and export, called through koffi. Pointers are
 * numbers, since addresses of a process have 47 bits. The caller must keep octets alive for as long as OpenSSL may use them.
 */
import { messageOf } from "../../lib/text/message-of.ts";
import { type ForeignFunctions, loadForeignFunctions, NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { loadKoffi } from "../../runtime/plain.ts";
import { judgeOpenSsl, QuicUnavailable } from "../availability.ts";

/** An address in this process; 0 for none. */
export type Pointer = number;

type Octets = Uint8Array | null;

/** Under their names in C. Functions with a status return 1 for success unless a manual page says otherwise. */
export interface OpenSsl {
  OSSL_QUIC_server_method(): Pointer;
  OSSL_QUIC_client_method(): Pointer;
  SSL_CTX_new(method: Pointer): Pointer;
  SSL_CTX_free(context: Pointer): void;
  SSL_CTX_ctrl(context: Pointer, command: number, number: number, pointer: Pointer): number;
  SSL_CTX_set_domain_flags(context: Pointer, flags: number): number;
  SSL_CTX_set_session_id_context(context: Pointer, id: Octets, length: number): number;
  SSL_CTX_set_alpn_select_cb(context: Pointer, callback: Pointer, argument: Pointer): void;
  SSL_CTX_set_cert_cb(context: Pointer, callback: Pointer, argument: Pointer): void;
  SSL_CTX_set_keylog_callback(context: Pointer, callback: Pointer): void;
  SSL_CTX_set_verify(context: Pointer, mode: number, callback: Pointer): void;
  SSL_CTX_set1_cert_store(context: Pointer, store: Pointer): void;
  SSL_CTX_use_cert_and_key(c: Pointer, leaf: Pointer, key: Pointer, chain: Pointer, over: number): number;
  SSL_use_cert_and_key(ssl: Pointer, leaf: Pointer, key: Pointer, chain: Pointer, over: number): number;
  SSL_certs_clear(ssl: Pointer): void;
  SSL_set_verify(ssl: Pointer, mode: number, callback: Pointer): void;
  SSL_set_num_tickets(ssl: Pointer, count: number): number;
  SSL_get0_param(ssl: Pointer): Pointer;
  SSL_get1_session(ssl: Pointer): Pointer;
  SSL_set_session(ssl: Pointer, session: Pointer): number;
  SSL_session_reused(ssl: Pointer): number;
  SSL_SESSION_is_resumable(session: Pointer): number;
  SSL_SESSION_free(session: Pointer): void;
  SSL_set1_host(ssl: Pointer, name: string): number;
  SSL_set_hostflags(ssl: Pointer, flags: number): void;
  SSL_get_verify_result(ssl: Pointer): number;
  /** The variant with a string as its last argument, for some commands. */
  SSL_ctrl(ssl: Pointer, command: number, number: number, text: string | null): number;
  /** The trust store for the peer's certificate, for this connection only. */
  setVerifyStore(ssl: Pointer, store: Pointer): number;
  X509_VERIFY_PARAM_set1_ip_asc(parameters: Pointer, address: string): number;
  X509_verify_cert_error_string(code: number): string;
  SSL_new_listener(context: Pointer, flags: number): Pointer;
  SSL_listen(listener: Pointer): number;
  SSL_new(context: Pointer): Pointer;
  SSL_free(ssl: Pointer): void;
  SSL_set_bio(ssl: Pointer, read: Pointer, write: Pointer): void;
  SSL_set_blocking_mode(ssl: Pointer, on: number): number;
  SSL_set_value_uint(ssl: Pointer, kind: number, id: number, value: number): number;
  SSL_get_value_uint(ssl: Pointer, kind: number, id: number, value: Octets): number;
  SSL_handle_events(ssl: Pointer): number;
  SSL_get_event_timeout(ssl: Pointer, time: Octets, infinite: Octets): number;
  SSL_accept_connection(listener: Pointer, flags: number): Pointer;
  SSL_accept_stream(connection: Pointer, flags: number): Pointer;
  SSL_get_accept_stream_queue_len(connection: Pointer): number;
  SSL_is_init_finished(connection: Pointer): number;
  SSL_set_default_stream_mode(connection: Pointer, mode: number): number;
  SSL_set_incoming_stream_policy(connection: Pointer, policy: number, code: number): number;
  SSL_new_stream(connection: Pointer, flags: number): Pointer;
  SSL_get_stream_id(stream: Pointer): number;
  SSL_get_stream_read_state(stream: Pointer): number;
  SSL_get_stream_write_state(stream: Pointer): number;
  SSL_get_stream_read_error_code(stream: Pointer, code: Octets): number;
  SSL_read_ex(stream: Pointer, out: Octets, size: number, count: Octets): number;
  SSL_write_ex2(stream: Pointer, octets: Octets, length: number, flags: number, count: Octets): number;
  SSL_stream_conclude(stream: Pointer, flags: number): number;
  SSL_stream_reset(stream: Pointer, code: Octets, size: number): number;
  SSL_get_error(ssl: Pointer, result: number): number;
  SSL_get_conn_close_info(connection: Pointer, info: Octets, size: number): number;
  SSL_shutdown_ex(connection: Pointer, flags: number, codes: Octets, size: number): number;
  SSL_connect(connection: Pointer): number;
  SSL_set_alpn_protos(connection: Pointer, protocols: Octets, length: number): number;
  SSL_set1_initial_peer_addr(connection: Pointer, address: Octets): number;
  SSL_select_next_proto(
    out: Pointer,
    length: Pointer,
    mine: Octets,
    mineLength: number,
    theirs: Pointer,
    theirLength: number,
  ): number;
  BIO_new_bio_dgram_pair(one: Octets, oneRoom: number, other: Octets, otherRoom: number): number;
  BIO_ctrl(bio: Pointer, command: number, number: number, pointer: Pointer): number;
  BIO_sendmmsg(bio: Pointer, m: Octets, stride: number, count: number, flags: number, done: Octets): number;
  BIO_recvmmsg(bio: Pointer, m: Octets, stride: number, count: number, flags: number, done: Octets): number;
  BIO_free(bio: Pointer): number;
  /** @param at holds a pointer to the octets, which is moved to their end */
  d2i_X509(out: Octets, at: Octets, length: number): Pointer;
  X509_free(certificate: Pointer): void;
  X509_STORE_new(): Pointer;
  X509_STORE_free(store: Pointer): void;
  X509_STORE_add_cert(store: Pointer, certificate: Pointer): number;
  d2i_AutoPrivateKey(out: Octets, at: Octets, length: number): Pointer;
  EVP_PKEY_free(key: Pointer): void;
  OPENSSL_sk_new_null(): Pointer;
  OPENSSL_sk_push(stack: Pointer, item: Pointer): number;
  OPENSSL_sk_free(stack: Pointer): void;
  ERR_clear_error(): void;
  ERR_get_error(): number;
  ERR_error_string_n(code: number, out: Octets, size: number): void;
}

/** Return and parameter types in C. */
const SIGNATURES: Readonly<Record<Exclude<keyof OpenSsl, "setVerifyStore">, string>> = {
  OSSL_QUIC_server_method: "P()",
  OSSL_QUIC_client_method: "P()",
  SSL_CTX_new: "P(P)",
  SSL_CTX_free: "void(P)",
  SSL_CTX_ctrl: "long(P, int, long, P)",
  SSL_CTX_set_domain_flags: "int(P, U)",
  SSL_CTX_set_session_id_context: "int(P, B, uint)",
  SSL_CTX_set_alpn_select_cb: "void(P, P, P)",
  SSL_CTX_set_cert_cb: "void(P, P, P)",
  SSL_CTX_set_keylog_callback: "void(P, P)",
  SSL_CTX_set_verify: "void(P, int, P)",
  SSL_CTX_set1_cert_store: "void(P, P)",
  SSL_CTX_use_cert_and_key: "int(P, P, P, P, int)",
  SSL_use_cert_and_key: "int(P, P, P, P, int)",
  SSL_certs_clear: "void(P)",
  SSL_set_verify: "void(P, int, P)",
  SSL_set_num_tickets: "int(P, U)",
  SSL_get0_param: "P(P)",
  SSL_get1_session: "P(P)",
  SSL_set_session: "int(P, P)",
  SSL_session_reused: "int(P)",
  SSL_SESSION_is_resumable: "int(P)",
  SSL_SESSION_free: "void(P)",
  SSL_set1_host: "int(P, str)",
  SSL_set_hostflags: "void(P, uint)",
  SSL_get_verify_result: "long(P)",
  SSL_ctrl: "long(P, int, long, str)",
  X509_VERIFY_PARAM_set1_ip_asc: "int(P, str)",
  X509_verify_cert_error_string: "str(long)",
  SSL_new_listener: "P(P, U)",
  SSL_listen: "int(P)",
  SSL_new: "P(P)",
  SSL_free: "void(P)",
  SSL_set_bio: "void(P, P, P)",
  SSL_set_blocking_mode: "int(P, int)",
  SSL_set_value_uint: "int(P, uint, uint, U)",
  SSL_get_value_uint: "int(P, uint, uint, B)",
  SSL_handle_events: "int(P)",
  SSL_get_event_timeout: "int(P, B, B)",
  SSL_accept_connection: "P(P, U)",
  SSL_accept_stream: "P(P, U)",
  SSL_get_accept_stream_queue_len: "U(P)",
  SSL_is_init_finished: "int(P)",
  SSL_set_default_stream_mode: "int(P, uint)",
  SSL_set_incoming_stream_policy: "int(P, int, U)",
  SSL_new_stream: "P(P, U)",
  SSL_get_stream_id: "U(P)",
  SSL_get_stream_read_state: "int(P)",
  SSL_get_stream_write_state: "int(P)",
  SSL_get_stream_read_error_code: "int(P, B)",
  SSL_read_ex: "int(P, B, U, B)",
  SSL_write_ex2: "int(P, B, U, U, B)",
  SSL_stream_conclude: "int(P, U)",
  SSL_stream_reset: "int(P, B, U)",
  SSL_get_error: "int(P, int)",
  SSL_get_conn_close_info: "int(P, B, U)",
  SSL_shutdown_ex: "int(P, U, B, U)",
  SSL_connect: "int(P)",
  SSL_set_alpn_protos: "int(P, B, uint)",
  SSL_set1_initial_peer_addr: "int(P, B)",
  SSL_select_next_proto: "int(P, P, B, uint, P, uint)",
  BIO_new_bio_dgram_pair: "int(B, U, B, U)",
  BIO_ctrl: "long(P, int, long, P)",
  BIO_sendmmsg: "int(P, B, U, U, U, B)",
  BIO_recvmmsg: "int(P, B, U, U, U, B)",
  BIO_free: "int(P)",
  d2i_X509: "P(B, B, long)",
  X509_free: "void(P)",
  X509_STORE_new: "P()",
  X509_STORE_free: "void(P)",
  X509_STORE_add_cert: "int(P, P)",
  d2i_AutoPrivateKey: "P(B, B, long)",
  EVP_PKEY_free: "void(P)",
  OPENSSL_sk_new_null: "P()",
  OPENSSL_sk_push: "int(P, P)",
  OPENSSL_sk_free: "void(P)",
  ERR_clear_error: "void()",
  ERR_get_error: "ulong()",
  ERR_error_string_n: "void(ulong, B, U)",
};

const TYPES: Readonly<Record<string, string>> = {
  P: "uintptr_t",
  B: "void *",
  U: "uint64_t",
  uint: "unsigned int",
  ulong: "unsigned long",
  str: "const char *",
};

/** The library, and koffi's helpers. */
export interface QuicLibrary {
  readonly ssl: OpenSsl;
  /** A C function that calls one of ours, in this thread and during an OpenSSL call. It must not throw. */
  callback(parameters: readonly string[], call: (...values: number[]) => number): Pointer;
  /** The same for `void (*)(const SSL *, const char *)`. */
  textCallback(call: (text: string) => void): Pointer;
  readonly addressOf: (octets: Uint8Array) => Pointer;
  /** Memory allocated by OpenSSL. */
  view(address: Pointer, octets: number): Uint8Array;
  /** Takes the errors from OpenSSL's error queue of this thread. */
  errors(): string;
}

/**
 * Looks up all functions. Loaded libraries belong to a thread, as callbacks do.
 * @throws QuicUnavailable if a function is missing, or koffi does not work here
 */
export async function loadQuicLibrary(): Promise<QuicLibrary> {
  judgeOpenSsl(process.versions.openssl);
  const foreign = await foreignFunctions();
  const koffi = await loadKoffi();
  const ssl = bind(foreign);
  const move = foreign.library.func("uintptr_t memmove(void *, const void *, size_t)");
  const text = Buffer.alloc(256);
  return {
    ssl,
    callback: (parameters, call) =>
      Number(koffi.register(call, koffi.pointer(koffi.proto("int", [...parameters])))),
    textCallback(call) {
      const type = koffi.proto("void", ["uintptr_t", "const char *"]);
      return Number(koffi.register((_ssl: number, line: string) => call(line), koffi.pointer(type)));
    },
    addressOf: (octets) => Number(move(octets, octets, 0)),
    view: (address, octets) => new Uint8Array(foreign.view(address, octets)),
    errors() {
      const found: string[] = [];
      for (let code = ssl.ERR_get_error(); code !== 0; code = ssl.ERR_get_error()) {
        ssl.ERR_error_string_n(code, text, text.length);
        found.push(text.toString("latin1", 0, text.indexOf(0)));
      }
      return found.join("; ");
    },
  };
}

async function foreignFunctions(): Promise<ForeignFunctions> {
  try {
    return await loadForeignFunctions();
  } catch (error) {
    const reason = error instanceof NoForeignFunctions ? error.message : String(error);
    throw new QuicUnavailable(`QUIC needs functions of OpenSSL that are called through koffi: ${reason}`, {
      cause: error,
    });
  }
}

const VERIFY_STORE = 106;

function bind({ library }: ForeignFunctions): OpenSsl {
  const functions: Record<string, unknown> = {};
  try {
    for (const [name, signature] of Object.entries(SIGNATURES)) {
      const [result = "", parameters = ""] = signature.slice(0, -1).split("(");
      const types = parameters === "" ? [] : parameters.split(", ");
      functions[name] = library.func(name, typeOf(result), types.map(typeOf));
    }
    const control = library.func("SSL_ctrl", "long", ["uintptr_t", "int", "long", "uintptr_t"]);
    functions.setVerifyStore = (ssl: Pointer, store: Pointer): number => control(ssl, VERIFY_STORE, 1, store);
  } catch (error) {
    throw new QuicUnavailable(
      `QUIC needs OpenSSL's functions for it, and this Node does not export them: ${messageOf(error)}. Official binaries of Node 24 and later do`,
      { cause: error },
    );
  }
  return functions as unknown as OpenSsl;
}

function typeOf(short: string): string {
  return TYPES[short] ?? short;
}
