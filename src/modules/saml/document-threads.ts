/** Reads SAML documents on separate threads, which are started when there is work. */

import { threadFile } from '../../lib/threads/thread-file.ts'
import { OffLoop, type OffLoopOptions } from '../../lib/threads/worker-pool.ts'
import { type SamlDocuments, samlDocuments } from './saml-documents.ts'

export function samlThreads({ limitMs }: Pick<OffLoopOptions, 'limitMs'> = {}): SamlDocuments & {
  close(): Promise<void>
} {
  const entry = threadFile('document-thread', import.meta.url)
  const offLoop = new OffLoop({ entry, ...(limitMs !== undefined && { limitMs }) })
  return { ...samlDocuments((owner, work) => offLoop.run(owner, work)), close: () => offLoop.close() }
}
