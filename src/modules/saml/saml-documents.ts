/** The port for reading SAML documents on another thread, with the code of both sides. */
import { BadInput } from '../../lib/shape/bad-input.ts'
import { type AnswerFault, readAnswer, type SamlAnswer } from './answer.ts'
import { type LogoutRequest, readLogoutRequest, type SentLogout } from './logout-request.ts'
import { type IdentityProvider, readMetadata } from './metadata.ts'

/** Whose share of the threads a document takes: the edge's owner, and within its part the source. */
export interface Sharer {
  readonly owner: string
  /** The source of the visitor; empty for what no visitor sent. */
  readonly source: string
}

/** Rejects with `WorkRefused` or `WorkTooHeavy`. */
export interface SamlDocuments {
  metadata(sharer: Sharer, xml: string): Promise<IdentityProvider | AnswerFault>
  /** `certificates` are in PEM, here and below. */
  answer(sharer: Sharer, base64: string, certificates: readonly string[]): Promise<SamlAnswer | AnswerFault>
  logoutRequest(sharer: Sharer, sent: SentLogout, certificates: readonly string[]): Promise<LogoutRequest | AnswerFault>
}

export type SamlWork =
  | { readonly kind: 'metadata'; readonly xml: string }
  | { readonly kind: 'answer'; readonly base64: string; readonly certificates: readonly string[] }
  | { readonly kind: 'logout'; readonly sent: SentLogout; readonly certificates: readonly string[] }

/** `run` does a piece of work with `doSamlWork`, on any thread. */
export function samlDocuments(run: (sharer: Sharer, work: SamlWork) => Promise<unknown>): SamlDocuments {
  // `T` is what `doSamlWork` returns for this kind of work.
  const ask = <T>(sharer: Sharer, work: SamlWork): Promise<T | AnswerFault> =>
    run(sharer, work) as Promise<T | AnswerFault>
  return {
    metadata: (sharer, xml) => ask<IdentityProvider>(sharer, { kind: 'metadata', xml }),
    answer: async (sharer, base64, certificates) =>
      isUnsigned(base64) ? unsigned : ask<SamlAnswer>(sharer, { kind: 'answer', base64, certificates }),
    logoutRequest: async (sharer, sent, certificates) =>
      sent.binding === 'post' && isUnsigned(sent.request)
        ? unsigned
        : ask<LogoutRequest>(sharer, { kind: 'logout', sent, certificates }),
  }
}

const unsigned: AnswerFault = { fault: 'unsigned', reason: 'it has no signature' }

/**
 * Whether a document in base64 would grant something, yet has no signature in its text, so that nobody has to wait while it is read.
 * Anybody can send such documents.
 */
function isUnsigned(base64: string): boolean {
  const text = Buffer.from(base64, 'base64')
  if (text.includes('SignatureValue') || text.includes('EncryptedAssertion')) return false
  return text.includes('LogoutRequest') || text.includes('status:Success')
}

export async function doSamlWork(work: SamlWork): Promise<IdentityProvider | SamlAnswer | LogoutRequest | AnswerFault> {
  switch (work.kind) {
    case 'answer':
      return readAnswer(work.base64, work.certificates)
    case 'logout':
      return readLogoutRequest(work.sent, work.certificates)
    case 'metadata':
      try {
        return readMetadata(work.xml)
      } catch (error) {
        if (error instanceof BadInput) return { fault: 'unreadable', reason: `metadata must ${error.message}` }
        throw error
      }
  }
}
