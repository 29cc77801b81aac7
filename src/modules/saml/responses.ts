/** Responses of the login pages to browsers and identity providers. */
import type { Respond } from '../phases.ts'

/** 303 and not 302, so that every browser follows with a GET. */
export function onwards(location: string, more: readonly (readonly [string, string])[] = []): Respond {
  const headers = [
    ['Location', location],
    ['Cache-Control', 'no-store'],
    ['Referrer-Policy', 'no-referrer'],
    ...more,
  ] as const
  return { respond: { status: 303, headers, body: '' } }
}

export function xmlPage(body: string): Respond {
  const headers = [
    ['Content-Type', 'application/samlmetadata+xml'],
    ['Cache-Control', 'no-cache'],
    ['X-Content-Type-Options', 'nosniff'],
  ] as const
  return { respond: { status: 200, headers, body } }
}
