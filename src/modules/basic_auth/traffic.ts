/**
 * Asks for a user name and a password (RFC 7617), and compares them in constant time.
 *
 * @example
 * const phases = compileBasicAuth({ credentials: [{ username: 'ada', password: 'secret' }] })
 * const ctx = request({ headers: { authorization: `Basic ${btoa('ada:secret')}` } })
 * phases.request(ctx) // undefined
 * ctx.found.get('basic_auth.username') // 'ada'
 * phases.request(request()).refuse // 'CREDENTIALS_REQUIRED'
 */
import { hash, timingSafeEqual } from 'node:crypto'
import type { Phases, RequestVerdict } from '../phases.ts'
import type { BasicAuthSettings } from './form.ts'

/** The longest `Authorization` header that is read: the longest name and password allowed, in base64. */
const MAX_HEADER_LENGTH = 2048

export function compileBasicAuth({ credentials, realm = 'postern' }: BasicAuthSettings): Phases {
  const refused: RequestVerdict = {
    refuse: 'CREDENTIALS_REQUIRED',
    headers: [['WWW-Authenticate', `Basic realm="${realm.replace(/["\\]/g, '\\$&')}"`]],
  }
  const known = credentials.map(({ username, password }) => {
    const pair = Buffer.from(`${username}:${password}`)
    return { username, pair: digest(pair), encoded: digest(pair.toString('base64')) }
  })
  /** Compares with all of them, even after a match, so that the time does not show which one matched. */
  const find = (given: Buffer, form: 'pair' | 'encoded'): string | undefined => {
    let username: string | undefined
    for (const each of known) if (timingSafeEqual(each[form], given)) username = each.username
    return username
  }
  const userOf = (header: string | undefined): string | undefined => {
    if (header === undefined || header.length > MAX_HEADER_LENGTH) return undefined
    const [, token] = /^basic +([-+/_0-9a-z]+={0,2})$/i.exec(header.trim()) ?? []
    if (token === undefined) return undefined
    // Nearly every client writes base64 in the same way, so its digest can be compared. Some leave out the padding.
    return find(digest(token), 'encoded') ?? find(digest(Buffer.from(token, 'base64')), 'pair')
  }
  return {
    request({ headers, found }) {
      // With two headers, the upstream might use the one not checked.
      const [header, ...more] = headers.all('authorization')
      const username = more.length === 0 ? userOf(header) : undefined
      found.set('basic_auth.decision', username === undefined ? 'block' : 'allow')
      if (username === undefined) return refused
      found.set('basic_auth.username', username)
      return undefined
    },
  }
}

function digest(data: Buffer | string): Buffer {
  return hash('sha256', data, 'buffer')
}
