/** The port for reading SAML documents on another thread, with the code of both sides. */
import { BadInput } from '../../lib/shape/bad-input.ts'
import { type AnswerFault, readAnswer, type SamlAnswer } from './answer.ts'
import { type LogoutRequest, readLogoutRequest, type SentLogout } from './logout-request.ts'
import { type IdentityProvider, readMetadata } from './metadata.ts'

/** Work of one `owner` does not delay that of another. Rejects with `WorkRefused` or `WorkTooHeavy`. */
export interface SamlDocuments {
  metadata(owner: string, xml: string): Promise<IdentityProvider | AnswerFault>
  /** `certificates` are in PEM, here and below. */
  answer(owner: string, base64: string, certificates: readonly string[]): Promise<SamlAnswer | AnswerFault>
  logoutRequest(owner: string, sent: SentLogout, certificates: readonly string[]): Promise<LogoutRequest | AnswerFault>
}

export type SamlWork =
  | { readonly kind: 'metadata'; readonly xml: string }
  | { readonly kind: 'answer'; readonly base64: string; readonly certificates: readonly string[] }
  | { readonly kind: 'logout'; readonly sent: SentLogout; readonly certificates: readonly string[] }

/** `run` does a piece of work with `doSamlWork`, on any thread. */
export function samlDocuments(run: (owner: string, work: SamlWork) => Promise<unknown>): SamlDocuments {
  // `T` is what `doSamlWork` returns for this kind of work.
  const ask = <T>(owner: string, work: SamlWork): Promise<T | AnswerFault> =>
    run(owner, work) as Promise<T | AnswerFault>
  return {
    metadata: (owner, xml) => ask<IdentityProvider>(owner, { kind: 'metadata', xml }),
    answer: (owner, base64, certificates) => ask<SamlAnswer>(owner, { kind: 'answer', base64, certificates }),
    logoutRequest: (owner, sent, certificates) => ask<LogoutRequest>(owner, { kind: 'logout', sent, certificates }),
  }
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
