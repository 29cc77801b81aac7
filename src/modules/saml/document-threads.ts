/** Documents of SAML on threads of their own; none runs before there is work. */
import { OffLoop } from '../../lib/threads/off-loop.ts'
import { type SamlDocuments, samlDocuments } from './documents.ts'

export function samlThreads(): SamlDocuments & { close(): Promise<void> } {
  // The name of the file as it runs now: from its source, or built.
  const entry = new URL(`./document-thread${import.meta.url.slice(-3)}`, import.meta.url)
  const offLoop = new OffLoop({ entry })
  return { ...samlDocuments((owner, work) => offLoop.run(owner, work)), close: () => offLoop.close() }
}
