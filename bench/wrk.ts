/** Runs wrk: requests on kept-alive connections. */
import { fileURLToPath } from 'node:url'
import type { Entrance } from './entrance.ts'
import type { Load } from './measure.ts'
import type { Programs } from './stage/programs.ts'

/** How much longer than the test itself it may run, in milliseconds. */
const GRACE_MS = 20_000

const toLoopback = fileURLToPath(new URL('./to-loopback.lua', import.meta.url))

export interface WrkOptions {
  readonly wrk: string
  readonly entrance: Entrance
  readonly path: string
  readonly connections: number
  readonly seconds: number
}

/** Runs wrk; the amount is in answers. */
export async function runWrk(programs: Programs, options: WrkOptions): Promise<Load> {
  return parseWrk(await printed(programs, options))
}

/** One connection that downloads for as long as it lasts; the amount is in bytes. */
export async function transferred(programs: Programs, options: Omit<WrkOptions, 'connections'>): Promise<Load> {
  return parseTransfer(await printed(programs, { ...options, connections: 1 }), options.seconds)
}

async function printed(programs: Programs, { wrk, entrance, path, connections, seconds }: WrkOptions): Promise<string> {
  const { host, port, hostHeader, cookie, tls } = entrance
  // One thread is enough, and leaves the cores to what is measured.
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, ...header('Host', hostHeader), ...header('Cookie', cookie)]
  // wrk takes the TLS server name from the URL.
  const to = tls
    ? ['-s', toLoopback, `https://${tls.name}:${port}${path}`, '-H', `Host: ${tls.name}`]
    : [`http://${host}:${port}${path}`]
  return programs.run(wrk, [...args, ...to], { timeoutMs: seconds * 1000 + GRACE_MS })
}

function header(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : ['-H', `${name}: ${value}`]
}

/** Parses the output of wrk; throws if an answer was not a success, because errors are quick and would look fast. */
export function parseWrk(text: string): Load {
  const [fault] = /Non-2xx.*|Socket errors:.*/.exec(text) ?? []
  if (fault !== undefined) throw new Error(`wrk: ${fault.trim()}`)
  const amount = Number(/(\d+) requests in /.exec(text)?.[1])
  const perSecond = Number(/^Requests\/sec: +([\d.]+)/m.exec(text)?.[1])
  if (!(amount > 0 && perSecond > 0)) throw new Error(`wrk got no answers: ${text.trim()}`)
  return { amount, seconds: amount / perSecond }
}

/** The units in which wrk prints an amount of bytes. */
const units: Readonly<Record<string, number>> = { B: 1, KB: 1024, MB: 1024 ** 2, GB: 1024 ** 3 }

/** Parses the output of a download, which has no complete answer to count; throws like `parseWrk`. */
export function parseTransfer(text: string, seconds: number): Load {
  const [fault] = /Non-2xx.*|Socket errors:.*/.exec(text) ?? []
  if (fault !== undefined) throw new Error(`wrk: ${fault.trim()}`)
  const [, value, unit = ''] = /^Transfer\/sec: +([\d.]+)(\w+)/m.exec(text) ?? []
  const perSecond = Number(value) * (units[unit] ?? Number.NaN)
  if (!(perSecond > 0)) throw new Error(`wrk got nothing: ${text.trim()}`)
  return { amount: perSecond * seconds, seconds }
}
