/** Bound sockets that Node can pass between processes; this process never accepts connections from them. */
import { lookup } from 'node:dns/promises'
import net, { type AddressInfo, isIP } from 'node:net'
import { getSystemErrorName } from 'node:util'
import type { ServerHandle } from '../../lib/net/early-listener.ts'

export interface BoundSocket {
  /** The handle to send to another process. */
  readonly handle: ServerHandle
  readonly address: AddressInfo
  close(): void
}

interface BindOptions {
  /** Whether several sockets may have this address, so that the system spreads connections over them. */
  readonly isSpread: boolean
}

interface RawHandle {
  /** 0, or a negative error number. */
  getsockname?(out: object): number
  getpeername?(out: object): number
  close(): void
}

interface ListeningHandle {
  listen(backlog: number): number
}

/**
 * Returns a handle, or an error number.
 *
 * Node has no public call for this: a `net.Server` accepts as soon as it listens. `net._createServerHandle` is what
 * `net.Server` and `cluster` themselves bind with. Only this file uses it.
 */
type CreateHandle = (
  address: string | null,
  port: number | null,
  type: number | null,
  fd: number | undefined,
  flags: number,
) => RawHandle | number

/** libuv's `UV_TCP_REUSEPORT`, as `net.Server` passes it for `reusePort`. */
const REUSE_PORT = 2

/** An error text when this version of Node cannot pass sockets; undefined when it can. */
export function missingInNode(): string | undefined {
  if (typeof createHandle() === 'function') return undefined
  return `Node ${process.versions.node} cannot pass sockets between processes; use another Node, or \`--workers 0\``
}

/** Binds a socket; rejects with the system's error, as `net.Server` would. */
export async function bindSocket(
  { host, port }: { readonly host: string; readonly port: number },
  { isSpread }: BindOptions,
): Promise<BoundSocket> {
  const { address, family } = isIP(host) === 0 ? await lookup(host) : { address: host, family: isIP(host) }
  return boundSocket(handleAt(address, port, family, undefined, isSpread ? REUSE_PORT : 0), { host, port })
}

/** Takes a socket that this process was started with. Throws an error with a code when it cannot listen. */
export function adoptSocket(fd: number): BoundSocket {
  const socket = handleAt(null, null, null, fd, 0)
  // A connected socket has an address too, but cannot listen.
  if (socket.getpeername?.({}) === 0) {
    socket.close()
    throw systemError('EINVAL', {})
  }
  return boundSocket(socket, {})
}

/**
 * Keeps a server that is given this socket from accepting connections, without the server noticing. Returns a function that ends
 * this and throws the system's error.
 */
export function postponeListening(given: ServerHandle): () => void {
  const handle = given as ListeningHandle // every socket that Node passes is one
  const listen = handle.listen.bind(handle)
  let wanted: number | undefined
  // What `net.Server` calls once it is otherwise ready.
  handle.listen = (backlog) => {
    wanted = backlog
    return 0
  }
  return () => {
    handle.listen = listen
    if (wanted === undefined) return
    const failed = handle.listen(wanted)
    if (failed !== 0) throw systemError(getSystemErrorName(failed), {})
  }
}

function handleAt(...given: Parameters<CreateHandle>): RawHandle {
  const create = createHandle()
  if (!create) throw new Error(missingInNode())
  const handle = create(...given)
  if (typeof handle !== 'number') return handle
  const [host, port] = given
  throw systemError(getSystemErrorName(handle), { host, port })
}

/** Checks that the socket is bound: that an address is taken shows only when its own address is read. */
function boundSocket(
  handle: RawHandle,
  socketAddress: { readonly host?: string; readonly port?: number },
): BoundSocket {
  const address: Partial<AddressInfo> = {}
  const failed = handle.getsockname ? handle.getsockname(address) : -1
  if (failed === 0 && address.address !== undefined)
    return { handle, address: address as AddressInfo, close: () => handle.close() }
  handle.close()
  throw systemError(handle.getsockname ? getSystemErrorName(failed) : 'ENOTSUP', socketAddress)
}

function systemError(
  code: string,
  { host, port }: { host?: string | null; port?: number | null },
): NodeJS.ErrnoException {
  const at = port === undefined || port === null ? '' : ` ${host}:${port}`
  return Object.assign(new Error(`listen ${code}${at}`), { code, syscall: 'listen', address: host, port })
}

function createHandle(): CreateHandle | undefined {
  return (net as unknown as { readonly _createServerHandle?: CreateHandle })._createServerHandle // not in the types
}
