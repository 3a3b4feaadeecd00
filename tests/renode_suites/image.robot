*** Settings ***
Documentation     A damaged image in flash: the golden firmware stays, and says why. Skipped for a
...               board without flash.
Resource          trebuchet.resource
Test Teardown     Test Teardown

*** Test Cases ***
A Bad Image Falls Back To Golden
    ${script}=    Get Variable Value    ${SCRIPT_BAD_IMAGE}    ${EMPTY}
    Skip If    not $script    this board has no flash
    Board    ${script}
    Start Emulation
    Wait For Line On Uart    firmware: golden
    Wait For Line On Uart    image: application: BAD_CHECKSUM
    Wait For Line On Uart    ready
