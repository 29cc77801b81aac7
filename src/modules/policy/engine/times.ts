/** Times and durations in expressions: their representation, and the fields of a time in a time zone. */
import { Fault, type Frame, type Impl, type Impls } from './evaluation-frame.ts'

/** The part that we need of how the library represents a time or a duration. */
export interface Time {
  readonly message: {
    readonly $typeName: 'google.protobuf.Timestamp' | 'google.protobuf.Duration'
    readonly seconds: bigint
    readonly nanos: number
  }
}

export function isTime(value: unknown): value is Time {
  if (typeof value !== 'object' || value === null || !('message' in value)) return false
  const { message } = value
  if (typeof message !== 'object' || message === null || !('$typeName' in message)) return false
  return message.$typeName === 'google.protobuf.Timestamp' || message.$typeName === 'google.protobuf.Duration'
}

/** The cost of shifting a time, and of looking up the local time of a zone. */
const SHIFT_NANOS = 300
const ZONE_NANOS = 12_000
/** The cost of loading a zone. */
const NEW_ZONE_NANOS = 200_000
/** The most zones that are remembered; there are some 400 in all. */
const MAX_ZONES = 64
/** No zone has a longer name. */
const MAX_ZONE_NAME = 64

/** Remembers the zones that were used, each with its formatter. */
export class Zones {
  readonly #known = new Map<string, Intl.DateTimeFormat>()

  /** `time` as a date whose UTC fields are the local time in `zone`; a `Fault` when there is no such zone. */
  shift({ message: { seconds, nanos } }: Time, zone: unknown, { budget }: Frame): Date | Fault {
    budget.charge(SHIFT_NANOS)
    const millis = Number(seconds) * 1000 + Math.floor(nanos / 1e6)
    if (zone === undefined || zone === 'UTC' || zone === '') return new Date(millis)
    if (typeof zone !== 'string' || zone.length > MAX_ZONE_NAME) return new Fault('a time zone has no such name')
    const [, sign, hours = '', minutes = ''] = /^([+-]?)(\d\d):(\d\d)$/.exec(zone) ?? []
    if (sign !== undefined) {
      const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
      return new Date(sign === '-' ? millis - offset : millis + offset)
    }
    budget.charge(this.#known.has(zone) ? ZONE_NANOS : NEW_ZONE_NANOS)
    const format = this.#known.get(zone) ?? this.#learn(zone)
    if (format instanceof Fault) return format
    const part = Object.fromEntries(format.formatToParts(millis).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
    return new Date(Date.UTC(year, month - 1, day, hour, minute, second, ((millis % 1000) + 1000) % 1000))
  }

  #learn(zone: string): Intl.DateTimeFormat | Fault {
    let format: Intl.DateTimeFormat
    try {
      format = new Intl.DateTimeFormat('en-US', {
        hourCycle: 'h23',
        timeZone: zone,
        year: 'numeric',
        month: 'numeric',
        day: 'numeric',
        hour: 'numeric',
        minute: 'numeric',
        second: 'numeric',
      })
    } catch {
      return new Fault('a time zone has no such name')
    }
    const [oldest] = this.#known.keys()
    if (this.#known.size >= MAX_ZONES && oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(zone, format)
    return format
  }
}

/** `getHours()` and the like for times; the library does those for durations. */
export function timeFunctions(zones: Zones): Impls {
  const field = (read: (date: Date) => number): Impl => {
    return (frame, time, zone) => {
      if (!isTime(time) || time.message.$typeName === 'google.protobuf.Duration') return undefined
      const date = zones.shift(time, zone, frame)
      if (date instanceof Fault) return date
      const value = read(date)
      return Number.isNaN(value) ? new Fault('a time is out of range') : BigInt(value)
    }
  }
  const fields: Readonly<Record<string, Impl>> = {
    getDate: field((date) => date.getUTCDate()),
    getDayOfMonth: field((date) => date.getUTCDate() - 1),
    getDayOfWeek: field((date) => date.getUTCDay()),
    getDayOfYear: field((date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000)),
    getFullYear: field((date) => date.getUTCFullYear()),
    getHours: field((date) => date.getUTCHours()),
    getMilliseconds: field((date) => date.getUTCMilliseconds()),
    getMinutes: field((date) => date.getUTCMinutes()),
    getMonth: field((date) => date.getUTCMonth()),
    getSeconds: field((date) => date.getUTCSeconds()),
  }
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, impl]) => [1, 2].map((count) => [`${name}/${count}`, impl])),
  )
}
