/** A visitor that keeps cookies by host and follows redirects between an edge and a provider, like a browser. */
import { request as requestPlain } from 'node:http'
import type { Platform } from '../../support/platform.ts'
import { type Answered, answerOf, type HttpVersion, visit } from '../../support/visitor.ts'

/** The most redirects that are followed. */
const MAX_HOPS = 12

export interface Arrived extends Answered {
  readonly url: string
  /** Every address on the way, the last included. */
  readonly hops: readonly string[]
}

export class JarClient {
  /** Cookies by host, and then by name. */
  readonly jars = new Map<string, Map<string, string>>()
  readonly #platform: Pick<Platform, 'ca'>
  readonly #version: HttpVersion

  constructor(platform: Pick<Platform, 'ca'>, version: HttpVersion) {
    this.#platform = platform
    this.#version = version
  }

  jar(host: string): Map<string, string> {
    const jar = this.jars.get(host) ?? new Map<string, string>()
    this.jars.set(host, jar)
    return jar
  }

  /** Sends one request, and follows no redirect. */
  async get(url: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): Promise<Answered> {
    const { protocol, origin, host, hostname, port, pathname, search } = new URL(url)
    const jar = this.jar(host)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const sent = { ...headers, ...(cookie !== '' && { cookie }) }
    const path = pathname + search
    const answer =
      protocol === 'https:'
        ? await visit(origin, this.#platform, { version: this.#version, method, path, headers: sent })
        : await answerOf(requestPlain({ host: hostname, port, path, headers: sent, agent: false }).end())
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) keep(jar, line)
    return answer
  }

  /** Follows redirects to their end. */
  async open(url: string): Promise<Arrived> {
    const hops = [url]
    for (let at = url; ; ) {
      const answer = await this.get(at)
      const { location } = answer.headers
      if (typeof location !== 'string') return { ...answer, url: at, hops }
      if (hops.length > MAX_HOPS) throw new Error(`redirected without end: ${hops.map(withoutQuery).join(' ')}`)
      at = new URL(location, at).href
      hops.push(at)
    }
  }
}

/** The URL as it may be printed: queries contain codes. */
export function withoutQuery(url: string): string {
  return url.replace(/\?.*$/s, '')
}

function keep(jar: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split(/; */)
  const name = pair.slice(0, pair.indexOf('='))
  const lower = attributes.map((each) => each.toLowerCase())
  const expires = lower.find((each) => each.startsWith('expires='))?.slice(8)
  const isOver = lower.includes('max-age=0') || (expires !== undefined && Date.parse(expires) <= Date.now())
  if (isOver) jar.delete(name)
  else jar.set(name, pair.slice(name.length + 1))
}
