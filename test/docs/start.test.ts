/** README and the pages for the first hour, followed from top to bottom. */
import assert from 'node:assert/strict'
import { freeTcpPort } from '../support/free-port.ts'
import { followPage } from './follow.ts'
import { service } from './service.ts'

const hello = (said: string) => assert.match(said, /^hello$/m)

followPage('README.md', {
  prepare: async () => ({ 3000: String(await freeTcpPort()) }),
  checks: {
    'curl --cacert data/ca.pem https://hello.localhost': hello,
    'export POSTERN_API_KEY': (said) => {
      assert.match(said, /"keys":\[\{"id":"ak_/)
      assert.match(said, /^ip-policies\t/m)
      assert.match(said, /`hostport` is not a known field; did you mean `hostports`\?/)
      assert.deepEqual(said.match(/^curl was answered \d+$/gm), ['curl was answered 200', 'curl was answered 400'])
    },
  },
})

followPage('docs/start.md', {
  prepare: async (reader) => {
    await reader.stays('postern serve')
    return { 3000: await service(reader), 20010: String(await freeTcpPort()), 20011: String(await freeTcpPort()) }
  },
  checks: {
    'curl http://localhost:20010/\n': hello,
    'curl http://localhost:20010/ || echo closed': (said) => assert.match(said, /^closed$/m),
    'call -X DELETE $API/ip_policies/$POLICY': (said) => assert.match(said, /ERR_STILL_REFERENCED/),
    'curl --cacert data/ca.pem https://shop': hello,
    'postern api tcp-edges list': (said) => assert.match(said, /"description": "the shop"/),
  },
})

followPage('docs/laptop.md', {
  prepare: async (reader) => ({ 3000: await service(reader), 20020: String(await freeTcpPort()) }),
  checks: {
    'curl http://app.localhost': (said) => assert.deepEqual(said.match(/^hello$/gm), ['hello', 'hello']),
    'curl http://127.0.0.1:20020/': hello,
    'curl --cacert data/ca.pem https://web': (said) => assert.deepEqual(said.match(/^hello$/gm), ['hello', 'hello']),
  },
})
