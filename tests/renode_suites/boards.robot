*** Settings ***
Documentation     Two boards on one switch. Both run the firmware of the same build; each has its
...               addresses from its own flash.
Resource          trebuchet.resource
Test Setup        Two Boards
Test Teardown     Test Teardown

*** Variables ***
${SCRIPT_TWO}     ${EMPTY}
# RFC 826: who has 192.0.2.3, tell 192.0.2.2 at 02:00:00:00:00:02?
${REQUEST}        ffffffffffff02000000000208060001080006040001020000000002c0000202000000000000c0000203

*** Keywords ***
Two Boards
    Skip If    $SCRIPT_TWO == ''    this board has no flash
    Test Setup
    Execute Command    include @${SCRIPT_TWO}
    ${first}=    Create Terminal Tester    sysbus.uart    machine=${NAME}0    timeout=${PATIENCE}
    ${second}=    Create Terminal Tester    sysbus.uart    machine=${NAME}1    timeout=${PATIENCE}
    Start Emulation
    Wait For Line On Uart    ready    testerId=${first}
    Wait For Line On Uart    ready    testerId=${second}

Frames Should Be
    [Arguments]    ${machine}    ${received}    ${sent}
    Execute Command    mach set "${machine}"
    ${found}=    Execute Command    sysbus.mac Received
    Should Be Equal As Integers    ${found.strip()}    ${received}
    ${found}=    Execute Command    sysbus.mac Sent
    Should Be Equal As Integers    ${found.strip()}    ${sent}

*** Test Cases ***
Boot In One Emulation
    No Operation

Ask And Answer
    Frames Should Be    ${NAME}0    0    0
    Frames Should Be    ${NAME}1    0    0
    Execute Command    mach set "${NAME}0"
    Execute Command    sysbus.mac SendHex "${REQUEST}"
    Sleep    1
    Frames Should Be    ${NAME}1    1    1
    Frames Should Be    ${NAME}0    1    1
