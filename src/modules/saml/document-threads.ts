/** Reads SAML documents on separate threads, which are started when there is work. */
import { OffLoop } from '../../lib/threads/off-loop.ts'
import { threadFile } from '../../lib/threads/thread-file.ts'
import { type SamlDocuments, samlDocuments } from './documents.ts'

export function samlThreads(): SamlDocuments & { close(): Promise<void> } {
  const offLoop = new OffLoop({ entry: threadFile('document-thread', import.meta.url) })
  return { ...samlDocuments((owner, work) => offLoop.run(owner, work)), close: () => offLoop.close() }
}
