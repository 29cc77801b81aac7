/** Logs addresses that IP restrictions refuse, or would refuse, at a limited rate. */
import type { Logger } from '../log/create-log.ts'
import { MinuteLog } from '../log/minute-log.ts'

/** Lines per minute for each part. Anybody can cause one by connecting, so the log must not grow with an attack. */
const LINES_PER_MINUTE = 20

interface Refused {
  readonly part: string
  readonly address: string
  readonly isEnforced: boolean
}

export class RefusedAddresses {
  readonly #lines: MinuteLog<Refused>

  constructor({ log }: { log: Logger }) {
    const write = ({ part, address, isEnforced }: Refused, visits: number): void => {
      const about = { restriction: part, peer: address, ...(visits > 1 && { visits }) }
      log.info(
        about,
        isEnforced ? 'IP restriction refused a connection' : 'IP restriction would refuse a connection if enforced',
      )
    }
    this.#lines = new MinuteLog(write, { lines: LINES_PER_MINUTE })
  }

  /** `address` is not admitted to `part`; if the restriction is enforced, it was refused. */
  note(part: string, address: string, { isEnforced }: { readonly isEnforced: boolean }): void {
    this.#lines.note({ part, address, isEnforced }, part)
  }

  /** Writes pending log lines. */
  close(): void {
    this.#lines.close()
  }
}
