/** Metadata of an identity provider, as such providers write it. */

/** For an RSA key whose private half was thrown away. */
const certificate = `MIIDKTCCAhGgAwIBAgIUUzs3+57nNzDO1mXkZS1bicQSAPEwDQYJKoZIhvcNAQEL
BQAwJDEiMCAGA1UEAwwZRXhhbXBsZSBpZGVudGl0eSBwcm92aWRlcjAeFw0yNjEx
MTYwNTA2NTdaFw00NjExMTEwNTA2NTdaMCQxIjAgBgNVBAMMGUV4YW1wbGUgaWRl
bnRpdHkgcHJvdmlkZXIwggEiMA0GCSqGSIb3DQEBAQUAA4IBDwAwggEKAoIBAQCs
jC49/kcLGX125nkXX0V4XYEf6kMftPD6sCpU8iHUgq+hZAIv/nRP8JDrAMjgmgo8
O1xAofoR1yR4XGw14jsvK74n8ZeCYQrrCJ41KpIgy1F1YnbcMDBHf+FFiZZUcZlc
jcv7esu+L7uM/4Sp7GsivXIGSFQszoOhHYgICHdfx2SOEDLGBYRgASOteWOwb1lE
VdJJ+AS2/dkWPC6uO78cJTuuws7H5uO/VjDjX3VRJT6Mx6bfO8sCtMwUIxO/aEBJ
8MMR9cm3GhCCQfy4mxLnBqFy5uMyserS5RWpNq3MIdS/7+WRfXkiq3sduNhQYp2J
mgSpZP18zVpQYw1F1kDPAgMBAAGjUzBRMB0GA1UdDgQWBBT9fy1Ccpsx/QDwA2NQ
+SqV6Pi18TAfBgNVHSMEGDAWgBT9fy1Ccpsx/QDwA2NQ+SqV6Pi18TAPBgNVHRMB
Af8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4IBAQA4Y26uxTxNwwEx0g9ctHSF4zKC
64dVuV/KpzsjGaalU8DiMjqqEIxSDjevUvS9wgWvwiHBXFuw8Kq6aeEYJyQlVchw
Ns5BEuE3SA0xukszWAD7y/c+eUh+alpt5IjaevgACJYMM6KsfErfb/B/Y3hlyiDL
wlhuQCuaraHhbvKTGvKX6BEqEwxfPqVAH+RGy1+yIvDvZ9MH/mdIHuHQUBuuXvoJ
mIeGEeSp9uTauVb/pkufi4mvgVlxUV94aGs8TDFzNuP1nS5pcsrsATkobVgEemus
YCls6y3v4KMgWZnICXd2Rl2cDlA97q9F9nAmk2pGR9ZyFnFfgYZjRaWzzkRH`

export const IDP_METADATA = `<?xml version="1.0" encoding="UTF-8"?>
<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="https://idp.example.com/saml/metadata">
  <md:IDPSSODescriptor WantAuthnRequestsSigned="false" protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">
    <md:KeyDescriptor use="signing">
      <ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#">
        <ds:X509Data>
          <ds:X509Certificate>${certificate}</ds:X509Certificate>
        </ds:X509Data>
      </ds:KeyInfo>
    </md:KeyDescriptor>
    <md:NameIDFormat>urn:oasis:names:tc:SAML:2.0:nameid-format:persistent</md:NameIDFormat>
    <md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example.com/saml/sso?a=1&amp;b=2"/>
  </md:IDPSSODescriptor>
</md:EntityDescriptor>
`
