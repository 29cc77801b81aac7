/** Keeps some file descriptors in reserve: when few are left, a new connection is closed as soon as it is accepted, or an idle one. */
import { type FileHandle, open } from 'node:fs/promises'
import type { Socket } from 'node:net'
import type { Logger } from '../log/create-log.ts'
import { MinuteLog } from '../log/minute-log.ts'

/** How many descriptors each kind of connection leaves free. Metrics leave fewest, so an operator can still look. */
export const spareDescriptors = { visitors: 64, agents: 32, api: 24, metrics: 8 } as const
export type Caller = keyof typeof spareDescriptors

/** The largest part of the limit that is kept free, for systems with a small limit. */
const MAX_SPARE_PART = 0.25

/** How often the limit is read again, and a file opened to check that this still works, in milliseconds. */
const CHECK_MS = 1000

interface DescriptorsOptions {
  readonly log: Logger
  readonly system?: DescriptorSystem
}

/** The functions of the operating system that are used here. */
interface DescriptorSystem {
  /** The text of `/proc/self/limits`, read without opening another descriptor; empty where there is no such file. */
  limits(): Promise<string>
  /** Fails when no file can be opened. */
  tryOpen(): Promise<void>
  close(): Promise<void>
}

/**
 * Without a reserve the process runs out of descriptors. Then accept fails, libuv closes new connections without telling us,
 * and the database, certificates and services cannot be opened either.
 */
export class Descriptors {
  readonly #system: DescriptorSystem
  readonly #lines: MinuteLog<Readonly<Record<string, unknown>>>
  #limit = Number.POSITIVE_INFINITY
  #refused = 0
  /** Refused connections that no log line has reported yet. */
  #unlogged = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ log, system = ownSystem() }: DescriptorsOptions) {
    this.#system = system
    this.#lines = new MinuteLog((fields) => {
      log.error({ ...fields, connections: this.#unlogged }, outOfDescriptors)
      this.#unlogged = 0
    })
  }

  /** Connections that the process closed or failed to accept for lack of descriptors. */
  get refused(): number {
    return this.#refused
  }

  /** Starts watching the limit, which an operator may change while the server runs. */
  async start(): Promise<void> {
    await this.look()
    this.#timer = setInterval(() => void this.look(), CHECK_MS).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#lines.close()
    await this.#system.close()
  }

  async look(): Promise<void> {
    const [, limit = ''] = /^Max open files +(\d+)/m.exec(await this.#system.limits()) ?? []
    this.#limit = limit === '' ? Number.POSITIVE_INFINITY : Number(limit)
    try {
      await this.#system.tryOpen()
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EMFILE' || code === 'ENFILE') this.#lines.note({ code })
    }
  }

  /**
   * Whether a connection that was just accepted may stay; closes it when too few descriptors are left, unless `giveWay` closes
   * another for one from this address.
   */
  admits(socket: Socket, caller: Caller, giveWay?: (ip: string) => boolean): boolean {
    // The system assigns the lowest free number, so the number of a descriptor shows how many are in use.
    if (descriptorOf(socket) < this.#limit - Math.min(spareDescriptors[caller], this.#limit * MAX_SPARE_PART))
      return true
    const hasRoom = giveWay?.(socket.remoteAddress ?? '') === true
    if (!hasRoom) socket.destroy()
    this.#refused++
    this.#unlogged++
    this.#lines.note({ callers: caller, limit: this.#limit })
    return hasRoom
  }

  /** Counts a connection that a listener failed to accept. */
  failed(error: NodeJS.ErrnoException, listener: string): void {
    this.#refused++
    this.#unlogged++
    this.#lines.note({ code: error.code, listener })
  }
}

const outOfDescriptors =
  'too few file descriptors: connections are closed; raise the limit (`ulimit -n`, or LimitNOFILE= of systemd)'

/** How much is read of the table of limits, in bytes; the table is shorter. */
const LIMITS_BYTES = 4096

function ownSystem(): DescriptorSystem {
  const path = '/proc/self/limits'
  let table: FileHandle | undefined
  return {
    async limits() {
      try {
        table ??= await open(path)
        const { buffer, bytesRead } = await table.read(Buffer.alloc(LIMITS_BYTES), 0, LIMITS_BYTES, 0)
        return buffer.toString('latin1', 0, bytesRead)
      } catch {
        return ''
      }
    },
    async tryOpen() {
      await (await open('/dev/null')).close()
    },
    async close() {
      await table?.close()
      table = undefined
    },
  }
}

/** The descriptor's number, or -1 when Node does not reveal it. */
function descriptorOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}
