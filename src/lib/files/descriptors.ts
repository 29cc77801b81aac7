/**
 * Keeps file descriptors for what is running: with few left, new connections are closed before they cost one for good.
 *
 * Without it the process runs out. Then the system's accept fails, libuv closes whoever connects without telling us, and
 * the database, certificates and upstream services cannot be opened either.
 */
import { type FileHandle, open } from 'node:fs/promises'
import type { Socket } from 'node:net'
import type { Logger } from '../log/log.ts'
import { MinuteLog } from '../log/minute-log.ts'

/** How many descriptors each kind of connection leaves to others; whoever looks what is wrong gets the last of them. */
export const spareDescriptors = { visitors: 64, agents: 32, api: 24, metrics: 8 } as const
export type Caller = keyof typeof spareDescriptors

/** Of a small limit, at most this part is kept free. */
const MAX_SPARE_PART = 0.25

/** How often the limit is read and a file is opened, to see whether it can be, in milliseconds. */
const LOOK_MS = 1000

export interface DescriptorsOptions {
  readonly log: Logger
  readonly system?: DescriptorSystem
}

/** What is asked of the system. */
export interface DescriptorSystem {
  /** The text of `/proc/self/limits`, which needs no further descriptor; empty where there is none, and then no limit is known. */
  limits(): Promise<string>
  /** Fails when no file can be opened. */
  tryOpen(): Promise<void>
  close(): Promise<void>
}

export class Descriptors {
  readonly #system: DescriptorSystem
  readonly #lines: MinuteLog<Readonly<Record<string, unknown>>>
  #limit = Number.POSITIVE_INFINITY
  #refused = 0
  /** Of these, those that no line has told of yet. */
  #untold = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ log, system = ownSystem() }: DescriptorsOptions) {
    this.#system = system
    this.#lines = new MinuteLog((fields) => {
      log.error({ ...fields, connections: this.#untold }, outOfDescriptors)
      this.#untold = 0
    })
  }

  /** Connections closed for want of descriptors, as far as the process is told of them. */
  get refused(): number {
    return this.#refused
  }

  /** Begins to watch the limit, which may be changed while we run. */
  async start(): Promise<void> {
    await this.look()
    this.#timer = setInterval(() => void this.look(), LOOK_MS).unref()
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

  /** Closes a connection that was just accepted, when too few descriptors would be left; whether it may stay. */
  admits(socket: Socket, caller: Caller): boolean {
    // The system hands out the lowest number that is free, so that a number tells how many are taken.
    if (descriptorOf(socket) < this.#limit - Math.min(spareDescriptors[caller], this.#limit * MAX_SPARE_PART))
      return true
    socket.destroy()
    this.#refused++
    this.#untold++
    this.#lines.note({ callers: caller, limit: this.#limit })
    return false
  }

  /** A listener could not accept. */
  failed(error: NodeJS.ErrnoException, listener: string): void {
    this.#refused++
    this.#untold++
    this.#lines.note({ code: error.code, listener })
  }
}

const outOfDescriptors =
  'too few file descriptors: new connections are closed; raise the limit (`ulimit -n`, or LimitNOFILE= of systemd)'

/** Longer than the table of limits is, in bytes. */
const LIMITS_BYTES = 4096

function ownSystem(): DescriptorSystem {
  const place = '/proc/self/limits'
  let table: FileHandle | undefined
  return {
    async limits() {
      try {
        table ??= await open(place)
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

/** -1 where it is not known. */
function descriptorOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: number } | null }
  return handle?.fd ?? -1
}
