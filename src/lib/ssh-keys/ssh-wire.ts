/** Reads and writes SSH's data types (RFC 4251 §5); reading is strict, with exact lengths. */

export class SshWireReader {
  #rest: Buffer
  readonly #damaged: () => Error

  /** `damaged` makes the error to throw when the bytes are malformed. */
  constructor(bytes: Buffer, damaged: () => Error) {
    this.#rest = bytes
    this.#damaged = damaged
  }

  get isAtEnd(): boolean {
    return this.#rest.length === 0
  }

  /** How many bytes are left. */
  get left(): number {
    return this.#rest.length
  }

  string(): Buffer {
    return this.#take(this.uint32())
  }

  /** A string of UTF-8; other bytes are refused, so that two texts are equal only when their bytes are. */
  text(): string {
    const bytes = this.string()
    const text = bytes.toString('utf8')
    if (!Buffer.from(text, 'utf8').equals(bytes)) throw this.#damaged()
    return text
  }

  uint32(): number {
    return this.#take(4).readUInt32BE(0)
  }

  uint64(): bigint {
    return this.#take(8).readBigUInt64BE(0)
  }

  /** A positive number without its sign byte; refuses all but the shortest form. */
  mpint(): Buffer {
    const value = this.string()
    const [first = 0, second = 0] = value
    if (first >= 0x80 || (first === 0 && second < 0x80)) throw this.#damaged()
    return first === 0 ? value.subarray(1) : value
  }

  /** All bytes that are left. */
  rest(): Buffer {
    return this.#take(this.#rest.length)
  }

  end(): void {
    if (this.#rest.length > 0) throw this.#damaged()
  }

  #take(bytes: number): Buffer {
    if (bytes > this.#rest.length) throw this.#damaged()
    const taken = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(bytes)
    return taken
  }
}

/** Each part preceded by its length. */
export function sshStrings(...parts: readonly (Buffer | string)[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const bytes = Buffer.from(part)
      return [sshUint32(bytes.length), bytes]
    }),
  )
}

export function sshUint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function sshUint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}

/** A positive number in its shortest form, without a length before it. */
export function sshMpint(value: Buffer): Buffer {
  let start = 0
  while (start < value.length && value[start] === 0) start++
  const digits = value.subarray(start)
  return (digits[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), digits]) : digits
}
