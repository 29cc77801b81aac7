/** The key of an answer or a request of an identity provider that was used. */
import { hash } from 'node:crypto'

/** A digest, so that its length is bounded and the database holds nothing of what was sent. */
export function answerKey(...names: readonly string[]): string {
  return hash('sha256', JSON.stringify(['saml', ...names]), 'base64url')
}
