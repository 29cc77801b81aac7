/** Something that is read from elsewhere, such as the keys of a provider: one read at a time, shared by all who wait for it. */

/** How long a failed read is not repeated, in milliseconds, since visitors wait for its answer. */
const FAILED_MS = 2000

const ignore = (): void => {}

export class SharedRead<T> {
  readonly #read: () => Promise<T>
  readonly #now: () => number
  #last: { readonly value: T; readonly readAt: number } | undefined
  #reading: Promise<T> | undefined
  #failed: { readonly error: unknown; readonly at: number } | undefined

  constructor(read: () => Promise<T>, now: () => number) {
    this.#read = read
    this.#now = now
  }

  /**
   * What was read last. When it is older than `freshMs`, it is read again in the background, and `onFault` is called if that
   * fails. Waits for a read when it is older than `staleMs`, or when there is nothing yet.
   */
  value(freshMs: number, staleMs = freshMs, onFault = ignore): Promise<T> {
    const age = this.#last ? this.#now() - this.#last.readAt : 0
    if (!this.#last || age >= staleMs) return this.#readOnce()
    if (age >= freshMs) this.#readOnce().catch(onFault)
    return Promise.resolve(this.#last.value)
  }

  #readOnce(): Promise<T> {
    const failed = this.#reading ? undefined : this.#failed
    if (failed && this.#now() - failed.at < FAILED_MS) return Promise.reject(failed.error)
    this.#reading ??= this.#readNow()
    return this.#reading
  }

  async #readNow(): Promise<T> {
    try {
      const value = await this.#read()
      this.#last = { value, readAt: this.#now() }
      this.#failed = undefined
      return value
    } catch (error) {
      this.#failed = { error, at: this.#now() }
      throw error
    } finally {
      this.#reading = undefined
    }
  }
}
